//! A whole conversation in each revision that has sessions.

use serde_json::{Value, json};

use super::before;
use crate::support::{
    agent::Agent,
    client::{Ask, Reply},
    gate::{Gate, ends, eventually},
    sound as say,
    tools::{LIST, Latch, Seen, Step, Tools},
};

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const QUESTION: &str = r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#;
const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A server of one revision, whose `get_fault` asks and answers once `answered` opens.
fn server(
    revision: &'static str,
    answered: &Latch,
) -> impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static {
    let answered = answered.clone();
    move |seen: &Seen| {
        Some(match (seen.method(), seen.tool()) {
            ("initialize", _) => say::welcome("up", revision),
            ("tools/list", _) => say::result(false, LIST),
            ("tools/call", "get_fault") => vec![
                say::stream(),
                say::event(QUESTION),
                Step::Wait(answered.clone()),
                say::event(&say::message(false, &say::text("asked"))),
                say::end(),
            ],
            ("tools/call", tool) => say::result(false, &say::text(&format!("ok {tool}"))),
            ("GET", _) => vec![say::stream(), say::event(CHANGED), Step::Hang],
            ("DELETE", _) => say::status(200, "text/plain", ""),
            _ => say::status(202, "text/plain", ""),
        })
    }
}

/// A client that says after `initialize` what its revision knows: the first has no header for it.
struct Client(Agent, &'static str);

impl Client {
    async fn open(gate: &Gate, revision: &'static str) -> Self {
        let agent = Agent::modern("s");
        let welcome = gate.send(agent.initialize(revision)).await;
        assert_eq!(welcome.status, 200, "{}", welcome.body);
        assert_eq!(welcome.json()["result"]["protocolVersion"], revision);
        let session = welcome.header("mcp-session-id").map(str::to_owned);
        assert!(session.is_some());
        Self(Agent { session, ..agent }, revision)
    }

    fn says(&self, ask: Ask) -> Ask {
        match self.1 {
            "2025-03-26" => ask.without("MCP-Protocol-Version"),
            revision => ask.set("MCP-Protocol-Version", revision),
        }
    }

    async fn send(&self, gate: &Gate, ask: Ask) -> Reply {
        gate.send(self.says(ask)).await
    }
}

#[tokio::test]
async fn every_revision_holds_a_whole_conversation() {
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let answered = Latch::new();
        let relay = "[relay]\nsampling = true\n";
        let (tools, gate) = before(server(revision, &answered), relay).await;
        let client = Client::open(&gate, revision).await;
        let agent = &client.0;
        assert_eq!(client.send(&gate, agent.post(READY)).await.status, 202);

        let list = client
            .send(&gate, agent.request("1", "tools/list", ""))
            .await;
        let offered = list.json()["result"]["tools"].as_array().map(Vec::len);
        assert_eq!(offered, Some(4), "{}", list.body);
        let called = client.send(&gate, agent.call("2", "get_weather")).await;
        assert_eq!(
            called.body,
            r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"ok get_weather"}],"_meta":{"io.tollgate/untrusted":{"server":"s"}}}}"#
        );

        let mut stream = gate.open(client.says(agent.bare("GET"))).await;
        assert_eq!(stream.event().await.as_deref(), Some(CHANGED));

        let mut call = gate.open(client.says(agent.call("3", "get_fault"))).await;
        let asked: Value = serde_json::from_str(&call.event().await.unwrap()).unwrap();
        assert_eq!(asked["method"], "sampling/createMessage");
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"x":1.0}}}}"#,
            asked["id"]
        );
        let taken = client.send(&gate, agent.post(&answer)).await;
        assert_eq!((taken.status, &*taken.body), (202, ""));
        assert_eq!(
            tools.of("POST")[0].text,
            r#"{"jsonrpc":"2.0","id":"q","result":{"x":1.0}}"#
        );
        answered.open();
        assert!(call.event().await.unwrap().contains("asked"));
        assert_eq!(call.event().await, None);

        let ended = client.send(&gate, agent.bare("DELETE")).await;
        assert_eq!(ended.status, 200);
        assert_eq!(stream.event().await, None);
        assert!(stream.complete);
        eventually("the server's stream ends", || tools.open() <= 1).await;
        let gone = client.send(&gate, agent.call("4", "get_weather")).await;
        assert_eq!(gone.status, 404);

        told(&tools, revision);
        let ended = ends(&gate.stop().await);
        assert!(!ended.iter().any(|end| end.contains("failed")), "{ended:?}");
    }
}

/// After `initialize` the server hears its own revision and its own session id, and never the client's.
fn told(tools: &Tools, revision: &str) {
    let seen = tools.seen();
    let (hello, rest) = seen.split_first().unwrap();
    assert_eq!(hello.json["params"]["protocolVersion"], revision);
    assert_eq!(hello.header("mcp-session-id"), None);
    for seen in rest {
        assert_eq!(seen.header("mcp-session-id"), Some("up"));
        let version = (revision != "2025-03-26").then_some(revision);
        assert_eq!(seen.header("mcp-protocol-version"), version);
    }
}

/// Only the first revision has batches, and no part of one is carried out: not in that revision either.
#[tokio::test]
async fn a_batch_is_refused_in_every_revision() {
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let (tools, gate) = before(server(revision, &Latch::new()), "").await;
        let client = Client::open(&gate, revision).await;
        let agent = &client.0;
        let call = agent.message("1", "tools/call", r#""name":"send_mail","arguments":{}"#);
        let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let batches = [
            format!("[{call}]"),
            format!(" [ {call} , {READY} ] "),
            format!("[{READY}]"),
            format!("[{response},{response}]"),
            "[]".to_owned(),
        ];
        for batch in &batches {
            let reply = client.send(&gate, agent.post(batch)).await;
            assert_eq!(reply.status, 400, "{revision} {batch}");
            let remedy = "send one message a request; batches are not supported";
            assert_eq!(
                reply.json(),
                json!({"jsonrpc":"2.0","error":{"code":-32600,
                    "message":format!("mcp.batch: a batch of messages; {remedy}"),
                    "data":{"code":"mcp.batch","remedy":remedy}}}),
                "{revision} {batch}"
            );
        }
        // The session goes on.
        let called = client.send(&gate, agent.call("2", "get_weather")).await;
        assert_eq!(called.status, 200, "{}", called.body);
        assert_eq!(tools.of("tools/call").len(), 1);
        assert_eq!(tools.of("notifications/initialized").len(), 0);
        let ended = ends(&gate.stop().await);
        let batches = ended
            .iter()
            .filter(|end| **end == "request refused mcp.batch");
        assert_eq!(batches.count(), 5, "{ended:?}");
    }
}
