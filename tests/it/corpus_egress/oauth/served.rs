//! What a connected server serves: the whole product stands between it and its client, and fetches nothing that it names.

use serde_json::{Value, json};

use super::Verdict;
use crate::support::{
    agent::Agent,
    gate::{Gate, Policy},
    sound as say,
    tools::{LIST, Seen, Step, Tools},
};

/// A tool's result holds this block.
pub(super) async fn result(block: &Value) -> Verdict {
    let mut named = block.clone();
    named["name"] = "x".into();
    let said = json!({ "content": [named] }).to_string();
    let reply =
        served(move |seen| (seen.tool() == "get_weather").then(|| say::result(true, &said))).await;
    passed(&reply, block["uri"].as_str().unwrap())
}

/// The server and its tools have these icons.
pub(super) async fn icons(icons: &Value) -> Verdict {
    let mut list: Value = serde_json::from_str(LIST).unwrap();
    list["tools"][0]["icons"] = icons.clone();
    let list = list.to_string();
    let greeting = json!({
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "t", "version": "1", "icons": icons },
    })
    .to_string();
    let reply = served(move |seen| match seen.method() {
        "tools/list" => Some(say::result(true, &list)),
        "server/discover" => Some(say::result(true, &greeting)),
        _ => None,
    })
    .await;
    passed(&reply, "ok get_weather")
}

/// The server wants its person to open this page.
pub(super) async fn page(url: &str) -> Verdict {
    let params = json!({ "message": "m", "mode": "url", "elicitationId": "e", "url": url });
    let question = json!({ "method": "elicitation/create", "params": params });
    let members = json!({ "a": question });
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"resultType":"input_required","inputRequests":{members}}}}}"#
    );
    let reply =
        served(move |seen| (seen.tool() == "get_weather").then(|| say::json(&message))).await;
    passed(&reply, url)
}

/// What a client reads that lists and then calls `get_weather`, where the server does what `script` says, else its part.
async fn served(script: impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static) -> String {
    let tools = Tools::start(script).await;
    let gate = Gate::start(&Policy::local("").server("s", tools.address, "", ""));
    let agent = Agent::modern("s");
    let list = gate.send(agent.request("0", "tools/list", "")).await;
    assert_eq!(list.status, 200, "{}", list.body);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_weather","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}}}}}}"#;
    let reply = gate.send(agent.post(body)).await;
    // One connection, to the server; and nothing else was even judged.
    let opened = gate.metric(r#"tollgate_egress_connections_total{reused="false"}"#);
    assert_eq!(opened, 1);
    let metrics = gate.handle.metrics();
    assert!(
        !metrics.contains("tollgate_egress_blocked_total{"),
        "{metrics}"
    );
    gate.stop().await;
    reply.body
}

fn passed(reply: &str, expected: &str) -> Verdict {
    let verdict = if reply.contains(expected) {
        "allow"
    } else {
        "error"
    };
    Verdict(verdict, reply.to_owned())
}
