//! What neither side is told of the other, because it is not relayed: tasks, extensions, experiments.

use serde_json::{Value, json};

use super::{Agent, before};
use crate::support::{
    gate::ends,
    sound as say,
    tools::{LIST, Seen, Step},
};

/// What a server says that it can do, and what is left of it.
const SERVERS: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"prompts":{},"completions":{},"logging":{},"extensions":{"io.modelcontextprotocol/tasks":{}},"experimental":{"x":{}}}"#;
const TOLD: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{},"completions":{},"logging":{}}"#;
/// The same of a client.
const CLIENTS: &str = r#"{"tasks":{"list":{},"requests":{"sampling":{"createMessage":{}}}},"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{},"com.example/x":{}},"experimental":{"x":{}}}"#;
const OFFERED: &str = r#"{"elicitation":{"form":{}}}"#;

fn server(seen: &Seen) -> Option<Vec<Step>> {
    let modern = format!(
        r#"{{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{SERVERS},"serverInfo":{{"name":"t"}}}}"#
    );
    let legacy = format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{SERVERS},"serverInfo":{{"name":"t","version":"1"}}}}"#
    );
    Some(match seen.method() {
        "server/discover" => say::result(true, &modern),
        "initialize" => say::result(false, &legacy),
        "tools/list" => say::result(seen.modern(), LIST),
        "tools/call" => say::result(seen.modern(), &say::text("done")),
        _ => say::status(202, "text/plain", ""),
    })
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn a_server_and_its_client_hear_only_of_what_is_relayed() {
    let (tools, gate) = before(server, "").await;
    let agent = Agent::modern("s");
    let discovered = gate.send(agent.request("1", "server/discover", "")).await;
    assert!(
        discovered
            .body
            .contains(&format!(r#""capabilities":{TOLD},"#)),
        "{}",
        discovered.body
    );
    let welcome = gate.send(agent.hello("2025-11-25", CLIENTS)).await;
    assert!(
        welcome.body.contains(&format!(r#""capabilities":{TOLD},"#)),
        "{}",
        welcome.body
    );
    let hello = tools.of("initialize").remove(0);
    assert_eq!(hello.json["params"]["capabilities"], value(OFFERED));

    let session = welcome.header("mcp-session-id").map(str::to_owned);
    let session = Agent { session, ..agent };
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"get_weather","task":{{"ttl":60000}},"arguments":{{"task":1}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{CLIENTS}}}}}}}"#
    );
    let modern = gate.send(Agent::modern("s").post(&call)).await;
    let params = r#""name":"get_weather","task":{"ttl":60000},"arguments":{"task":1}"#;
    let legacy = gate.send(session.request("1", "tools/call", params)).await;
    for reply in [modern, legacy] {
        let said = &reply.json()["result"]["content"][0]["text"];
        assert_eq!(said, "done", "{}", reply.body);
    }
    let calls = tools.of("tools/call");
    for call in &calls {
        assert_eq!(call.json["params"].get("task"), None, "{}", call.text);
        assert_eq!(call.json["params"]["arguments"], json!({"task": 1}));
    }
    let meta = &calls[0].json["params"]["_meta"];
    let offered = &meta["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(offered, &value(OFFERED));
    gate.stop().await;
}

/// Asked for all the same, they are unknown, and what a server tells of a task goes nowhere.
#[tokio::test]
async fn nobody_can_ask_for_a_task() {
    let (tools, gate) = before(server, "").await;
    for agent in Agent::both("s", &gate).await {
        let status = if agent.is_modern() { 404 } else { 200 };
        for method in [
            "tasks/get",
            "tasks/result",
            "tasks/list",
            "tasks/cancel",
            "tasks/update",
        ] {
            let reply = gate
                .send(agent.request("1", method, r#""taskId":"t""#))
                .await;
            assert_eq!(reply.status, status, "{method}");
            assert_eq!(reply.json()["error"]["code"], -32601, "{method}");
        }
        let status = r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t","status":"working"}}"#;
        assert_eq!(gate.send(agent.post(status)).await.status, 202);
    }
    let asked = tools.seen();
    assert!(asked.iter().all(|seen| !seen.method().contains("task")));
    let ended = ends(&gate.stop().await);
    let refused = ended
        .iter()
        .filter(|end| end.ends_with("mcp.method_unknown"));
    assert_eq!(refused.count(), 10, "{ended:?}");
}
