//! What servers say beside their answers.

use serde_json::Value;

use super::{SMALL, stop};
use crate::{
    gateway::{Agent, before},
    support::{
        gate::Gate,
        sound as say,
        tools::{Seen, Step, Tools},
    },
};

/// A server whose calls say `said` on their stream, and whose sessions say it on theirs.
async fn saying(said: Vec<String>, tables: &str) -> (Tools, Gate) {
    let script = move |seen: &Seen| {
        let mut steps = vec![say::stream()];
        steps.extend(said.iter().map(|said| say::event(said)));
        if seen.method() == "GET" {
            return Some([steps, vec![say::end()]].concat());
        }
        steps.push(say::event(&say::message(seen.modern(), &say::text("done"))));
        (seen.tool() == "get_fault").then(|| [steps, vec![say::end()]].concat())
    };
    before(script, tables).await
}

fn progress(message: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"\u200b","progress":1,"message":"{message}"}}}}"#
    )
}

#[tokio::test]
async fn notices_are_bounded_and_cleaned_on_every_stream() {
    let said = vec![
        progress("a\u{202e}b"),
        progress(r"a\u202eb"),
        progress(&"x".repeat(20_000)),
        progress("plain"),
    ];
    let (_tools, gate) = saying(said, SMALL).await;
    for agent in Agent::both("s", &gate).await {
        let call = gate.open(agent.call("1", "get_fault")).await;
        let mut streams = vec![call];
        if !agent.is_modern() {
            streams.push(agent.listen(&gate).await);
        }
        for mut stream in streams {
            for expected in [r"a\u{202E}b", r"a\u{202E}b", " bytes; incomplete]", "plain"] {
                let event = stream.event().await.unwrap();
                assert!(event.len() <= 8192, "{}", event.len());
                // The token is the client's own.
                assert!(event.contains(r#""progressToken":"\u200b""#), "{event}");
                let event: Value = serde_json::from_str(&event).unwrap();
                let message = event["params"]["message"].as_str().unwrap();
                assert!(message.ends_with(expected), "{message}");
            }
        }
    }
    stop(gate).await;
}

/// Runs of notices that are written as Tollgate's own are looked at as well.
#[tokio::test]
async fn runs_of_progress_are_cleaned() {
    let run: String = ["plain", "a\u{202e}b", "again"]
        .map(|message| format!("event: message\ndata: {}\n\n", progress(message)))
        .concat();
    let script = move |seen: &Seen| {
        let answer = say::event(&say::message(seen.modern(), &say::text("done")));
        let steps = vec![say::stream(), Step::Chunk(run.clone()), answer, say::end()];
        (seen.tool() == "get_fault").then_some(steps)
    };
    let (_tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        let mut call = gate.open(agent.call("1", "get_fault")).await;
        for expected in ["plain", r"a\u{202E}b", "again"] {
            let event: Value = serde_json::from_str(&call.event().await.unwrap()).unwrap();
            assert_eq!(event["params"]["message"], expected);
        }
        assert!(call.event().await.unwrap().contains("done"));
    }
    stop(gate).await;
}

#[tokio::test]
async fn questions_show_what_they_hide() {
    const PARAMS: &str =
        r#"{"message":"sure\u202e?","requestedSchema":{"type":"object","properties":{}}}"#;
    let question =
        format!(r#"{{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{PARAMS}}}"#);
    let asks = format!(
        r#"{{"resultType":"input_required","inputRequests":{{"q":{{"method":"elicitation/create","params":{PARAMS}}}}},"requestState":"s\u200b"}}"#
    );
    let script = move |seen: &Seen| match (seen.tool(), seen.modern()) {
        ("get_fault", true) => Some(say::json(&format!(
            r#"{{"jsonrpc":"2.0","id":$ID,"result":{asks}}}"#
        ))),
        ("get_fault", false) => Some(vec![say::stream(), say::event(&question), Step::Hang]),
        _ => None,
    };
    let (tools, gate) = before(script, "").await;
    let modern = Agent::modern("s");
    let offer = r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}"#;
    let call = modern
        .message("1", "tools/call", r#""name":"get_fault","arguments":{}"#)
        .replace(r#""io.modelcontextprotocol/clientCapabilities":{}"#, offer);
    let asked = gate.send(modern.post(&call)).await.json();
    let asked = &asked["result"];
    assert_eq!(
        asked["inputRequests"]["q"]["params"]["message"],
        r"sure\u{202E}?"
    );
    // The server's own state comes back to it as it was.
    let state = format!(
        r#""requestState":{},"inputResponses":{{"q":{{"action":"cancel"}}}},"name""#,
        asked["requestState"]
    );
    gate.send(modern.post(&call.replace("\"name\"", &state)))
        .await;
    let seen = tools.of("tools/call").pop().unwrap();
    assert_eq!(seen.json["params"]["requestState"], "s\u{200b}");

    let welcome = gate
        .send(modern.hello("2025-11-25", r#"{"elicitation":{}}"#))
        .await;
    let session = welcome.header("mcp-session-id").map(str::to_owned);
    let legacy = Agent { session, ..modern };
    let mut call = gate.open(legacy.call("1", "get_fault")).await;
    let asked: Value = serde_json::from_str(&call.event().await.unwrap()).unwrap();
    assert_eq!(asked["params"]["message"], r"sure\u{202E}?");
    drop(call);
    gate.handle.cut();
    gate.stop().await;
}

/// The person sees the question, cut, and its fields; what it means to programs stays.
#[tokio::test]
async fn long_logs_and_questions_are_cut() {
    let long = "x".repeat(20_000);
    let params = format!(
        r#"{{"message":"{long}","requestedSchema":{{"type":"object","properties":{{"a":{{"type":"string","description":"{long}"}}}}}}}}"#
    );
    let log = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"error","data":{{"why":"{long}"}}}}}}"#
    );
    let question =
        format!(r#"{{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{params}}}"#);
    let asks = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"resultType":"input_required","inputRequests":{{"q":{{"method":"elicitation/create","params":{params}}}}},"requestState":"s"}}}}"#
    );
    let script = move |seen: &Seen| match (seen.tool(), seen.modern()) {
        ("get_fault", true) => Some(say::events(&[&log, &asks])),
        ("get_fault", false) => {
            let [log, question] = [&log, &question].map(|said| say::event(said));
            Some(vec![say::stream(), log, question, Step::Hang])
        }
        _ => None,
    };
    let (_tools, gate) = before(script, SMALL).await;
    let modern = Agent::modern("s");
    let offer = r#""io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}"#;
    let call = modern
        .message("1", "tools/call", r#""name":"get_fault","arguments":{}"#)
        .replace(r#""io.modelcontextprotocol/clientCapabilities":{}"#, offer);
    let welcome = gate
        .send(modern.hello("2025-11-25", r#"{"elicitation":{}}"#))
        .await;
    let session = welcome.header("mcp-session-id").map(str::to_owned);
    let legacy = Agent {
        session,
        ..modern.clone()
    };
    for ask in [modern.post(&call), legacy.call("1", "get_fault")] {
        let mut stream = gate.open(ask).await;
        let mut said = Vec::new();
        for _ in 0..2 {
            let event = stream.event().await.unwrap();
            assert!(event.len() <= 8192 + 1024, "{}", event.len());
            said.push(serde_json::from_str::<Value>(&event).unwrap());
        }
        let params = match said[1]["params"].is_null() {
            true => &said[1]["result"]["inputRequests"]["q"]["params"],
            false => &said[1]["params"],
        };
        let property = &params["requestedSchema"]["properties"]["a"];
        for cut in [
            &said[0]["params"]["data"]["why"],
            &params["message"],
            &property["description"],
        ] {
            let cut = cut.as_str().unwrap();
            assert!(
                cut.starts_with("xxx") && cut.ends_with(" bytes; incomplete]"),
                "{cut}"
            );
        }
        assert_eq!(property["type"], "string");
    }
    gate.handle.cut();
    gate.stop().await;
}
