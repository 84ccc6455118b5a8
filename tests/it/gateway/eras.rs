//! Servers of one era only, and servers of older revisions.

use serde_json::json;

use super::{Agent, before, ends};
use crate::support::{
    gate::{Gate, Policy},
    sound,
    tools::{LIST, Seen, Step, Tools},
};

fn legacy_only(seen: &Seen) -> Option<Vec<Step>> {
    let modern = seen.header("mcp-session-id").is_none() && seen.method() != "initialize";
    modern.then(|| sound::status(400, "text/plain", "no session"))
}

fn modern_only(seen: &Seen) -> Option<Vec<Step>> {
    let body = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}"#;
    let head = "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let head = head.as_bytes().to_vec();
    (seen.method() == "initialize").then(|| vec![Step::Say(head), sound::chunk(body), sound::end()])
}

/// What a modern client is told: not -32022, which would say that the server is modern.
fn sessions_only(server: &str) -> serde_json::Value {
    let remedy = "start a session with `initialize`; this server speaks the session protocol only";
    let message = format!(
        "upstream.sessions_only: server `{server}` does not speak protocol version 2026-07-28 here; it speaks 2025-11-25; {remedy}"
    );
    json!({"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":message,
        "data":{"code":"upstream.sessions_only","remedy":remedy}}})
}

/// What a client of sessions is told.
fn modern_required() -> serde_json::Value {
    let remedy = "connect with a protocol version that the server speaks";
    let message = format!(
        "upstream.era: server `s` does not speak protocol version 2025-11-25 here; it speaks 2026-07-28; {remedy}"
    );
    json!({"jsonrpc":"2.0","id":"i","error":{"code":-32022,"message":message,
        "data":{"code":"upstream.era","remedy":remedy,"supported":["2026-07-28"],"requested":"2025-11-25"}}})
}

#[tokio::test]
async fn modern_clients_are_told_of_session_servers() {
    let (tools, gate) = before(legacy_only, "").await;
    let agent = Agent::modern("s");
    for ask in [
        agent.call("1", "get_weather"),
        agent.request("1", "tools/list", ""),
        agent.request("1", "server/discover", ""),
    ] {
        let reply = gate.send(ask).await;
        assert_eq!(reply.status, 400);
        assert_eq!(reply.json(), sessions_only("s"));
    }
    assert_eq!(
        tools.of("server/discover").len(),
        1,
        "asked once, then remembered"
    );
    agent.legacy(&gate).await.good(&gate).await;
    let ended = ends(&gate.stop().await);
    assert_eq!(
        ended
            .iter()
            .filter(|end| end.ends_with("upstream.sessions_only"))
            .count(),
        3,
        "{ended:?}"
    );
}

#[tokio::test]
async fn session_clients_are_told_of_modern_servers() {
    let (_tools, gate) = before(modern_only, "").await;
    let reply = gate.send(Agent::modern("s").initialize("2025-11-25")).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json(), modern_required());
    assert_eq!(super::stop(gate).await, ["request failed upstream.era"]);
}

#[tokio::test]
async fn the_operators_word_spares_the_question() {
    let tools = Tools::start(|_| None).await;
    let policy = Policy::local("")
        .server("s", tools.address, "era = \"modern\"", "")
        .server("old", tools.address, "era = \"legacy\"", "");
    let gate = Gate::start(&policy);
    let reply = gate.send(Agent::modern("s").initialize("2025-11-25")).await;
    assert_eq!(reply.json(), modern_required());
    let old = Agent::modern("old");
    let reply = gate.send(old.call("1", "get_weather")).await;
    assert_eq!((reply.status, reply.json()), (400, sessions_only("old")));
    assert!(tools.seen().is_empty());
    old.legacy(&gate).await.good(&gate).await;
    super::stop(gate).await;
}

/// The client is told what the server answers, and both speak it from then on.
#[tokio::test]
async fn every_revision_with_sessions_is_spoken() {
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let script = move |seen: &Seen| {
            Some(match seen.method() {
                "initialize" => sound::welcome("up", revision),
                "tools/list" => sound::result(false, LIST),
                "tools/call" => sound::result(false, &sound::text("ok get_weather")),
                _ => sound::status(202, "text/plain", ""),
            })
        };
        let (tools, gate) = before(script, "").await;
        let agent = Agent::modern("s").legacy(&gate).await;
        assert_eq!(
            tools.of("initialize")[0].json["params"]["protocolVersion"],
            "2025-11-25"
        );
        let reply = gate
            .send(
                agent
                    .call("1", "get_weather")
                    .set("MCP-Protocol-Version", revision),
            )
            .await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        // The first revision knows no such header.
        let told = (revision != "2025-03-26").then_some(revision);
        assert_eq!(
            tools.of("tools/call")[0].header("mcp-protocol-version"),
            told
        );
        agent.good(&gate).await;
        gate.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_holds_out_for_an_unknown_revision_is_refused() {
    let script =
        |seen: &Seen| (seen.method() == "initialize").then(|| sound::welcome("up", "2024-11-05"));
    let (_tools, gate) = before(script, "").await;
    let reply = gate.send(Agent::modern("s").initialize("2025-06-18")).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.header("mcp-session-id"), None);
    let error = &reply.json()["error"];
    assert_eq!(error["code"], -32602);
    assert_eq!(
        error["message"],
        "upstream.revision: server `s` does not speak protocol version 2025-11-25 here; it speaks 2024-11-05; ask the operator for a newer version of the server; sessions speak 2025-03-26 to 2025-11-25"
    );
    assert_eq!(gate.metric("tollgate_mcp_sessions"), 0);
    super::stop(gate).await;
}

#[tokio::test]
async fn discovery_is_cut_to_what_is_relayed() {
    let (_tools, gate) = before(|_| None, "").await;
    let reply = gate
        .send(Agent::modern("s").request("1", "server/discover", ""))
        .await;
    assert_eq!(
        reply.body,
        r#"{"jsonrpc":"2.0","id":1,"result":{"ttlMs":0,"cacheScope":"private","resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{"listChanged":true},"prompts":{}},"serverInfo":{"name":"t"}}}"#
    );
    assert_eq!(super::stop(gate).await, ["request allowed"]);
}
