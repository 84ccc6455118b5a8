//! What counts towards a turn beside its results.

use serde_json::{Value, json};

use super::{Agent, Gate, Policy, result, stop, text};
use crate::support::{
    client::Ask,
    sound as say,
    tools::{Seen, Step, Tools},
};

const LONG: usize = 40_000;

/// A gateway whose turns come to 64 KiB, before a server whose calls do what the conversation is called.
async fn in_turns(
    script: impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static,
) -> (Tools, Gate) {
    let tools = Tools::start(script).await;
    let policy = Policy::local("[limits]\nturn_bytes = 65536\n").server("s", tools.address, "", "");
    (tools, Gate::start(&policy))
}

/// A call that is answered as `said`; both eras have turns of their own.
fn call(agent: &Agent, said: &str) -> Ask {
    let params = format!(r#""name":"get_fault","arguments":{{"as":"{said}"}}"#);
    let ask = agent.request("1", "tools/call", &params);
    let conversation = if agent.is_modern() { "m" } else { "l" };
    ask.with("Tollgate-Turn", "1")
        .with("Tollgate-Conversation", conversation)
}

fn is_spent(result: &Value) -> bool {
    let said = result["content"][0]["text"].as_str().unwrap_or_default();
    said.starts_with("[budget.turn_spent: ")
}

#[tokio::test]
async fn errors_count_and_are_short_once_a_turn_is_spent() {
    let error = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"error":{{"code":-32000,"message":"{}"}}}}"#,
        "x".repeat(LONG)
    );
    let whole = json!({ "content": [text(&"x".repeat(LONG))] }).to_string();
    let script = move |seen: &Seen| match seen.json["params"]["arguments"]["as"].as_str()? {
        "error" => Some(say::json(&error)),
        "result" => Some(say::result(seen.modern(), &whole)),
        _ => None,
    };
    let (_tools, gate) = in_turns(script).await;
    for agent in Agent::both("s", &gate).await {
        for expected in [LONG, LONG, 0] {
            let reply = gate.send(call(&agent, "error")).await;
            let error = &reply.json()["error"];
            assert_eq!(error["code"], -32000);
            let said = error["message"].as_str().unwrap();
            if expected == 0 {
                assert!(reply.body.len() < 1200, "{}", reply.body.len());
                assert!(said.ends_with(" bytes; incomplete]"), "{said}");
            } else {
                assert_eq!(said.len(), expected);
            }
        }
        assert!(is_spent(&result(&gate.send(call(&agent, "result")).await)));
    }
    stop(gate).await;
}

/// A notice of either kind, and what of it is text.
fn notice(method: &str, said: &str) -> String {
    let params = match method {
        "message" => format!(r#""level":"info","data":"{said}""#),
        _ => format!(r#""progressToken":"t","progress":1,"message":"{said}""#),
    };
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{{params}}}}}"#)
}

/// A gateway before a server that says `notices` before it answers.
async fn saying(notices: Vec<String>) -> (Tools, Gate) {
    in_turns(move |seen: &Seen| {
        let events = notices.iter().map(|notice| say::event(notice));
        let answer = say::event(&say::message(seen.modern(), &say::text("done")));
        let steps = [say::stream()].into_iter().chain(events);
        let steps = steps.chain([answer, say::end()]);
        (seen.tool() == "get_fault").then(|| steps.collect())
    })
    .await
}

/// A call that asks for logs in either era.
fn logged(agent: &Agent) -> Ask {
    const META: &str = r#""_meta":{"#;
    const LOGS: &str = r#""_meta":{"io.modelcontextprotocol/logLevel":"debug","#;
    let call = agent.message("1", "tools/call", r#""name":"get_fault","arguments":{}"#);
    let conversation = if agent.is_modern() { "m" } else { "l" };
    agent
        .post(&call.replace(META, LOGS))
        .with("Tollgate-Turn", "1")
        .with("Tollgate-Conversation", conversation)
}

/// What the call brings: its notices, and its answer.
async fn brought(gate: &Gate, ask: Ask) -> (Vec<Value>, Value) {
    let mut stream = gate.open(ask).await;
    let mut notices = Vec::new();
    loop {
        let event: Value = serde_json::from_str(&stream.event().await.unwrap()).unwrap();
        if event["id"] == 1 {
            return (notices, event["result"].clone());
        }
        notices.push(event);
    }
}

#[tokio::test]
async fn logs_count_and_are_left_out_once_a_turn_is_spent() {
    let long = notice("message", &"x".repeat(LONG));
    let (_tools, gate) = saying(vec![long; 4]).await;
    for agent in Agent::both("s", &gate).await {
        let (logs, result) = brought(&gate, logged(&agent)).await;
        assert_eq!(logs.len(), 2);
        assert!(is_spent(&result), "{result}");
    }
    stop(gate).await;
}

#[tokio::test]
async fn what_progress_says_counts_and_only_how_far_it_is_stays() {
    let long = notice("progress", &"x".repeat(LONG));
    let escaped = long.replace("message", r"mess\u0061ge");
    // As Tollgate writes it, and otherwise.
    let run = |notice: &str| Step::Chunk(format!("event: message\ndata: {notice}\n\n"));
    let steps = [
        say::event(&long),
        run(&escaped),
        say::event(&long),
        run(&long),
        run(&escaped),
    ];
    let (_tools, gate) = in_turns(move |seen: &Seen| {
        let answer = say::event(&say::message(seen.modern(), &say::text("done")));
        let said = [say::stream()].into_iter().chain(steps.clone());
        (seen.tool() == "get_fault").then(|| said.chain([answer, say::end()]).collect())
    })
    .await;
    for agent in Agent::both("s", &gate).await {
        let (told, result) = brought(&gate, logged(&agent)).await;
        let said: Vec<_> = told.iter().map(|told| &told["params"]["message"]).collect();
        assert_eq!(
            said.iter()
                .map(|said| said.as_str().unwrap().len())
                .collect::<Vec<_>>(),
            [LONG, LONG, 0, 0, 0]
        );
        assert!(
            told.iter()
                .all(|told| told["params"]["progressToken"] == "t")
        );
        assert!(is_spent(&result), "{result}");
    }
    stop(gate).await;
}

/// Progress of long calls comes often: how far it is costs nothing.
#[tokio::test]
async fn progress_without_words_does_not_count() {
    let plain = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#;
    let (_tools, gate) = saying(vec![plain.to_owned(); 800]).await;
    for agent in Agent::both("s", &gate).await {
        let (told, result) = brought(&gate, logged(&agent)).await;
        assert_eq!(told.len(), 800);
        assert_eq!(result["content"][0]["text"], "done");
    }
    stop(gate).await;
}

/// A session's own stream names no turn: what comes on it counts towards those of a minute.
#[tokio::test]
async fn logs_on_the_stream_of_a_session_count_too() {
    let long = notice("message", &"x".repeat(LONG));
    let last = notice("progress", "x");
    let script = move |seen: &Seen| {
        let said = [&long, &long, &long, &last].map(|said| say::event(said));
        let steps = [say::stream()].into_iter().chain(said);
        (seen.method() == "GET").then(|| steps.chain([Step::Hang]).collect())
    };
    let (_tools, gate) = in_turns(script).await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let mut stream = agent.listen(&gate).await;
    for expected in [LONG, LONG, 0] {
        let event: Value = serde_json::from_str(&stream.event().await.unwrap()).unwrap();
        let params = &event["params"];
        let said = [&params["data"], &params["message"]].map(|said| said.as_str().unwrap_or(""));
        assert_eq!(said.concat().len(), expected);
    }
    drop(stream);
    gate.handle.cut();
    gate.stop().await;
}
