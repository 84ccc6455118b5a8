//! What a server asks of a client in a session, and the way back of the answer.

use serde_json::{Value, json};

use super::{before, stop};
use crate::support::{
    agent::Agent,
    client::patiently,
    gate::{Gate, eventually},
    sound as say,
    tools::{Latch, Seen, Step, Tools},
};

const ALL: &str = "[relay]\nsampling = true\nroots = true\n";
const OFFERED: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true},"tasks":{},"experimental":{"x":{}}}"#;
const FORM: &str = r#"{"jsonrpc":"2.0","id":"q-1","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{"n":{"type":"number","x":1.0}}}}}"#;

/// A session of a client that offers `capabilities`.
async fn session(gate: &Gate, capabilities: &str) -> Agent {
    let mut agent = Agent::modern("s");
    let welcome = gate.send(agent.hello("2025-11-25", capabilities)).await;
    assert_eq!(welcome.status, 200, "{}", welcome.body);
    agent.session = welcome.header("mcp-session-id").map(str::to_owned);
    agent
}

/// A server whose `get_fault` asks `question` and answers once `next` opens.
fn asking(question: &'static str, next: &Latch) -> impl Fn(&Seen) -> Option<Vec<Step>> + use<> {
    let next = next.clone();
    move |seen: &Seen| {
        let answer = say::message(false, &say::text("done"));
        (seen.tool() == "get_fault").then(|| {
            vec![
                say::stream(),
                say::event(question),
                Step::Wait(next.clone()),
                say::event(&answer),
                say::end(),
            ]
        })
    }
}

/// The client's messages that are answers.
fn responses(tools: &Tools) -> Vec<Value> {
    let seen = tools.of("POST");
    seen.into_iter().map(|seen| seen.json).collect()
}

fn reply_to(asked: &Value, member: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},{member}}}"#, asked["id"])
}

#[tokio::test]
async fn a_question_goes_to_the_client_and_its_answer_to_who_asked() {
    let next = Latch::new();
    let (tools, gate) = before(asking(FORM, &next), ALL).await;
    let agent = session(&gate, OFFERED).await;
    assert_eq!(
        tools.of("initialize")[0].json["params"]["capabilities"],
        json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": true}})
    );
    let mut reply = gate.open(agent.call("1", "get_fault")).await;
    let asked = reply.event().await.expect("the question");
    let question: Value = serde_json::from_str(&asked).expect("JSON");
    assert!(question["id"].is_u64());
    assert_eq!(
        asked.replace(&format!(r#""id":{}"#, question["id"]), r#""id":"q-1""#),
        FORM
    );

    // An answer to what was not asked goes nowhere, in another's session as in one's own.
    let other = session(&gate, OFFERED).await;
    let accept = r#""result":{"action":"accept","content":{"n":1.50}}"#;
    for (agent, answer) in [
        (&other, reply_to(&question, accept)),
        (&agent, reply_to(&json!({"id": 4711}), accept)),
        (
            &agent,
            reply_to(&json!({"id": question["id"].to_string()}), accept),
        ),
        (&agent, reply_to(&json!({"id": "q-1"}), accept)),
    ] {
        assert_eq!(gate.send(agent.post(&answer)).await.status, 202);
    }
    assert_eq!(responses(&tools), Vec::<Value>::new());

    let answer = reply_to(&question, accept);
    assert_eq!(gate.send(agent.post(&answer)).await.status, 202);
    let seen = tools.of("POST").remove(0);
    assert_eq!(
        seen.text,
        r#"{"jsonrpc":"2.0","id":"q-1","result":{"action":"accept","content":{"n":1.50}}}"#
    );
    assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"));
    // Once is enough.
    assert_eq!(gate.send(agent.post(&answer)).await.status, 202);
    assert_eq!(responses(&tools).len(), 1);
    next.open();
    assert!(reply.event().await.expect("the answer").contains("done"));
    assert_eq!(reply.event().await, None);
    let records = gate.stop().await;
    let answered: Vec<_> = records
        .iter()
        .filter(|record| record["method"] == "elicitation/create")
        .collect();
    assert_eq!(answered.len(), 1);
    assert_eq!(answered[0]["outcome"], "allowed");
}

#[tokio::test]
async fn what_was_not_offered_is_not_asked() {
    let sample = r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#;
    let page = |url: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{{"mode":"url","url":"{url}","elicitationId":"e","message":"m"}}}}"#
        )
    };
    let leak = |text: String| -> &'static str { text.leak() };
    let form_only = r#"{"elicitation":{}}"#;
    for (question, offered, relay, code) in [
        (sample, r#"{"sampling":{}}"#, "", -32601),
        (sample, "{}", ALL, -32601),
        (FORM, OFFERED, "[relay]\nelicitation = false\n", -32602),
        (FORM, "{}", "", -32602),
        (leak(page("https://example.com/")), form_only, "", -32602),
        (leak(page("javascript:alert(1)")), OFFERED, "", -32602),
        (leak(page("http://example.com/")), OFFERED, "", -32602),
        (leak(page("file:///etc/passwd")), OFFERED, "", -32602),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#,
            r#"{"roots":{}}"#,
            "",
            -32601,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"t"}}"#,
            OFFERED,
            ALL,
            -32601,
        ),
    ] {
        let next = Latch::new();
        let (tools, gate) = before(asking(question, &next), relay).await;
        let agent = session(&gate, offered).await;
        let mut reply = gate.open(agent.call("1", "get_fault")).await;
        eventually("the server is told", || !responses(&tools).is_empty()).await;
        let told = responses(&tools).remove(0);
        assert_eq!(told["error"]["code"], code, "{question}: {told}");
        let id = serde_json::from_str::<Value>(question).expect("JSON")["id"].clone();
        assert_eq!(told["id"], id);
        next.open();
        let answer = reply.event().await.expect("the answer");
        assert!(answer.contains("done"), "{question}: {answer}");
        stop(gate).await;
    }
}

#[tokio::test]
async fn pages_open_by_https_and_on_ones_own_machine() {
    for url in [
        "https://example.com/a?b=c",
        "http://127.0.0.1:8080/",
        "http://localhost/",
    ] {
        let question: &'static str = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{{"mode":"url","url":"{url}","elicitationId":"e","message":"m"}}}}"#
        )
        .leak();
        let next = Latch::new();
        let (_tools, gate) = before(asking(question, &next), "").await;
        let agent = session(&gate, OFFERED).await;
        let mut reply = gate.open(agent.call("1", "get_fault")).await;
        let asked = reply.event().await.expect("the question");
        assert!(asked.contains(url), "{asked}");
        next.open();
        assert!(reply.event().await.expect("the answer").contains("done"));
        stop(gate).await;
    }
}

/// On the stream that belongs to no call, with what takes a question back.
#[tokio::test]
async fn questions_outside_a_call_are_asked_and_taken_back() {
    let next = Latch::new();
    let script = {
        let next = next.clone();
        move |seen: &Seen| {
            (seen.method() == "GET").then(|| {
                vec![
                    say::stream(),
                    say::event(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#),
                    say::event(FORM),
                    say::event(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"unknown"}}"#),
                    say::event(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q-1","reason":"r"}}"#),
                    Step::Wait(next.clone()),
                    say::event(r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e"}}"#),
                    Step::Hang,
                ]
            })
        }
    };
    let (tools, gate) = before(script, ALL).await;
    let agent = session(&gate, OFFERED).await;
    let mut stream = agent.listen(&gate).await;
    let mut next_event = async || -> Value {
        let text = patiently(stream.event()).await.expect("an event");
        serde_json::from_str(&text).expect("JSON")
    };
    let roots = next_event().await;
    let form = next_event().await;
    let back = next_event().await;
    assert_eq!(roots["method"], "roots/list");
    assert_eq!(form["method"], "elicitation/create");
    assert_eq!(back["method"], "notifications/cancelled");
    assert_eq!(
        back["params"],
        json!({"requestId": form["id"], "reason": "r"})
    );
    let late = reply_to(&form, r#""result":{"action":"cancel"}"#);
    assert_eq!(gate.send(agent.post(&late)).await.status, 202);
    let answer = reply_to(&roots, r#""result":{"roots":[]}"#);
    assert_eq!(gate.send(agent.post(&answer)).await.status, 202);
    assert_eq!(
        responses(&tools),
        [json!({"jsonrpc": "2.0", "id": 1, "result": {"roots": []}})]
    );
    next.open();
    assert_eq!(
        next_event().await["method"],
        "notifications/elicitation/complete"
    );
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
    assert_eq!(gate.send(agent.post(changed)).await.status, 202);
    assert_eq!(tools.of("notifications/roots/list_changed").len(), 1);
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#;
    assert_eq!(gate.send(agent.post(progress)).await.status, 202);
    assert_eq!(tools.of("notifications/progress")[0].text, progress);
    gate.stop().await;
}

/// Nobody waits for an answer to what a call asked once the call is over.
#[tokio::test]
async fn a_question_ends_with_its_call() {
    let next = Latch::new();
    let (tools, gate) = before(asking(FORM, &next), "").await;
    let agent = session(&gate, OFFERED).await;
    let mut reply = gate.open(agent.call("1", "get_fault")).await;
    let asked = reply.event().await.expect("the question");
    let question: Value = serde_json::from_str(&asked).expect("JSON");
    next.open();
    assert!(reply.event().await.expect("the answer").contains("done"));
    assert_eq!(reply.event().await, None);
    let answer = reply_to(&question, r#""result":{"action":"decline"}"#);
    assert_eq!(gate.send(agent.post(&answer)).await.status, 202);
    assert_eq!(responses(&tools), Vec::<Value>::new());
    stop(gate).await;
}

/// A client whose answer cannot be delivered is told so.
#[tokio::test]
async fn an_answer_that_the_server_does_not_take_is_an_error() {
    let next = Latch::new();
    let asking = asking(FORM, &next);
    let script = move |seen: &Seen| match seen.method() {
        "POST" => Some(say::status(500, "text/plain", "no")),
        _ => asking(seen),
    };
    let (_tools, gate) = before(script, "").await;
    let agent = session(&gate, OFFERED).await;
    let mut reply = gate.open(agent.call("1", "get_fault")).await;
    let asked = reply.event().await.expect("the question");
    let question: Value = serde_json::from_str(&asked).expect("JSON");
    let answer = reply_to(&question, r#""result":{"action":"decline"}"#);
    let refused = gate.send(agent.post(&answer)).await;
    assert_eq!(refused.status, 502, "{}", refused.body);
    // The id is of the server's choosing: the client could take it for one of its own requests.
    assert_eq!(refused.json()["id"], Value::Null);
    next.open();
    assert!(reply.event().await.expect("the answer").contains("done"));
    stop(gate).await;
}
