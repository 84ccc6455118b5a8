//! What agents get wrong: a clear answer, a record, and nothing of it at the server.

use serde_json::{Value, json};

use super::{sound, stop};
use crate::support::{
    agent::Agent,
    client::{Ask, Exchange, Reply},
    gate::Gate,
    tools::Tools,
};

/// What a refusal must say: HTTP status, JSON-RPC number (0 where it is none), code.
pub(super) type Expected = (u16, i64, &'static str);

fn check(what: &str, reply: &Reply, (status, number, code): Expected) {
    let body = reply.json();
    assert_eq!(reply.status, status, "{what}: {}", reply.body);
    if number == 0 {
        assert_eq!(body["error"]["code"], code, "{what}");
        return;
    }
    assert_eq!(body["jsonrpc"], "2.0", "{what}");
    assert_eq!(body["error"]["code"], number, "{what}: {}", reply.body);
    let message = body["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with(&format!("{code}: ")),
        "{what}: {message}"
    );
    assert_eq!(body["error"]["data"]["code"], code, "{what}");
}

/// Sends each request, and holds answers and records against what is expected.
pub(super) async fn refused(gate: Gate, tools: &Tools, cases: Vec<(&str, Ask, Expected)>) {
    let mut expected = Vec::new();
    for (what, ask, expects) in cases {
        check(what, &gate.send(ask).await, expects);
        expected.push(expects.2);
    }
    let ended = stop(gate).await;
    let refusals: Vec<_> = ended
        .iter()
        .filter_map(|end| end.split_once(" refused "))
        .map(|(_, code)| code)
        .collect();
    assert_eq!(refusals, expected);
    assert_eq!(
        tools.of("tools/call").len(),
        1,
        "only the good call reached the server"
    );
}

#[tokio::test]
async fn headers_that_contradict_the_body_are_refused() {
    let (tools, gate) = sound().await;
    let agent = Agent::modern("s");
    let ask = || agent.call("1", "get_weather");
    let mismatch = (400, -32020, "mcp.header_mismatch");
    let twice = (400, -32020, "mcp.header_duplicate");
    let cases = vec![
        (
            "version",
            ask().set("MCP-Protocol-Version", "2025-11-25"),
            mismatch,
        ),
        (
            "no version",
            ask().without("MCP-Protocol-Version"),
            mismatch,
        ),
        ("method", ask().set("Mcp-Method", "tools/list"), mismatch),
        (
            "method's case",
            ask().set("Mcp-Method", "Tools/call"),
            mismatch,
        ),
        ("no method", ask().without("Mcp-Method"), mismatch),
        ("name", ask().set("Mcp-Name", "send_mail"), mismatch),
        ("no name", ask().without("Mcp-Name"), mismatch),
        (
            "broken base64",
            ask().set("Mcp-Name", "=?base64?***?="),
            mismatch,
        ),
        ("not ASCII", ask().set("Mcp-Name", "get_wéather"), mismatch),
        (
            "two versions",
            ask().with("MCP-Protocol-Version", "2026-07-28"),
            twice,
        ),
        ("two methods", ask().with("Mcp-Method", "tools/call"), twice),
        ("two names", ask().with("mcp-name", "get_weather"), twice),
        (
            "two types",
            ask().with("Content-Type", "application/json"),
            twice,
        ),
        (
            "two sessions",
            ask()
                .with("Mcp-Session-Id", "a")
                .with("Mcp-Session-Id", "b"),
            twice,
        ),
    ];
    refused(gate, &tools, cases).await;
}

#[tokio::test]
async fn media_types_are_demanded() {
    let (tools, gate) = sound().await;
    let agent = Agent::modern("s");
    let ask = || agent.call("1", "get_weather");
    let kind = (415, 0, "mcp.content_type");
    let accept = (406, 0, "mcp.accept");
    let cases = vec![
        ("none", ask().without("Content-Type"), kind),
        ("text", ask().set("Content-Type", "text/plain"), kind),
        (
            "form",
            ask().set("Content-Type", "application/x-www-form-urlencoded"),
            kind,
        ),
        (
            "latin",
            ask().set("Content-Type", "application/json; charset=latin1"),
            kind,
        ),
        ("accepts nothing", ask().without("Accept"), accept),
        (
            "accepts JSON",
            ask().set("Accept", "application/json"),
            accept,
        ),
        (
            "accepts events",
            ask().set("Accept", "text/event-stream"),
            accept,
        ),
        (
            "not events",
            ask().set("Accept", "application/json, text/event-stream;q=0"),
            accept,
        ),
    ];
    refused(gate, &tools, cases).await;
}

#[tokio::test]
async fn modern_requests_carry_their_metadata() {
    let (tools, gate) = sound().await;
    let agent = Agent::modern("s");
    let missing = (400, -32602, "mcp.meta_missing");
    let change =
        |from: &str, to: &str| agent.post(&agent.message("1", "tools/list", "").replace(from, to));
    let unsupported = (400, -32022, "mcp.version_unsupported");
    let old = change("2026-07-28", "2030-01-01").set("MCP-Protocol-Version", "2030-01-01");
    let reply = gate.send(old.clone()).await;
    assert_eq!(
        reply.json()["error"]["data"]["supported"],
        json!(["2026-07-28"])
    );
    assert_eq!(reply.json()["error"]["data"]["requested"], "2030-01-01");
    let unknown = (404, -32601, "mcp.method_unknown");
    let gone = [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "tasks/get",
        "Tools/list",
    ];
    let mut cases = vec![
        ("again", old, unsupported),
        ("no version", change("protocolVersion", "other"), missing),
        (
            "no capabilities",
            change("clientCapabilities", "other"),
            missing,
        ),
        (
            "capabilities of another type",
            change(":{}}", ":1}"),
            missing,
        ),
        (
            "no meta",
            agent.post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#),
            missing,
        ),
        (
            "no name",
            agent.request("1", "tools/call", ""),
            (400, -32602, "mcp.invalid_params"),
        ),
        (
            "arguments of another type",
            agent.request("1", "tools/call", r#""name":"get_weather","arguments":[]"#),
            (400, -32602, "mcp.invalid_params"),
        ),
        (
            "a response",
            agent.post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            (400, -32600, "mcp.invalid_request"),
        ),
    ];
    cases.extend(gone.map(|method| (method, agent.request("1", method, ""), unknown)));
    let legacy = Agent::modern("s").legacy(&gate).await;
    for method in [
        "server/discover",
        "subscriptions/listen",
        "tasks/list",
        "Tools/list",
    ] {
        cases.push((
            method,
            legacy.request("1", method, ""),
            (200, -32601, "mcp.method_unknown"),
        ));
    }
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#,
    ] {
        let reply = gate.send(legacy.post(body)).await;
        assert_eq!((reply.status, &*reply.body), (202, ""));
    }
    let unasked =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(gate.send(agent.post(unasked)).await.status, 202);
    let mut expected: Vec<&str> = vec!["mcp.version_unsupported"];
    for (what, ask, expects) in cases {
        check(what, &gate.send(ask).await, expects);
        expected.push(expects.2);
    }
    let ended = stop(gate).await;
    let refusals: Vec<_> = ended
        .iter()
        .filter_map(|end| end.split_once(" refused "))
        .map(|(_, code)| code)
        .collect();
    assert_eq!(refusals, expected);
    assert_eq!(tools.of("tools/call").len(), 1);
}

#[tokio::test]
async fn what_an_agent_says_beside_its_message_is_held_against_it() {
    let (tools, gate) = sound().await;
    let agent = Agent::modern("s");
    let own = |key: &str, value: &str| {
        let body = agent.message("1", "tools/call", r#""name":"get_weather""#);
        body.replacen(
            r#""_meta":{"#,
            &format!(r#""_meta":{{"io.tollgate/{key}":{value},"#),
            1,
        )
    };
    let unavailable = (400, -32600, "mcp.invalid_request");
    let cases = vec![
        (
            "tools",
            agent
                .call("1", "get_weather")
                .with("Tollgate-Tools", "get_*"),
            unavailable,
        ),
        (
            "private",
            agent.call("1", "get_weather").with("Tollgate-Private", "1"),
            unavailable,
        ),
        (
            "tools' twin",
            agent.post(&own("tools", "\"get_*\"")),
            unavailable,
        ),
        (
            "private's twin",
            agent.post(&own("private", "true")),
            unavailable,
        ),
        (
            "conversation",
            agent
                .post(&own("conversation", "\"a\""))
                .with("Tollgate-Conversation", "b"),
            (400, -32020, "mcp.header_mismatch"),
        ),
        (
            "turn",
            agent.post(&own("turn", "\"a\"")).with("Tollgate-Turn", "b"),
            (400, -32020, "mcp.header_mismatch"),
        ),
        (
            "no word",
            agent.post(&own("turn", "7")),
            (400, -32602, "mcp.invalid_params"),
        ),
    ];
    let agreeing = agent
        .post(&own("conversation", "\"a\""))
        .with("Tollgate-Conversation", "a");
    assert_eq!(gate.send(agreeing).await.status, 200);
    for (what, ask, expects) in cases {
        check(what, &gate.send(ask).await, expects);
    }
    agent.good(&gate).await;
    assert_eq!(tools.of("tools/call").len(), 2);
    let records = gate.stop().await;
    let named: Vec<&Value> = records
        .iter()
        .map(|record| &record["conversation"])
        .collect();
    assert!(named.contains(&&json!("a")), "{named:?}");
    assert!(
        tools
            .seen()
            .iter()
            .all(|seen| !seen.head.to_lowercase().contains("tollgate-"))
    );
}

#[tokio::test]
async fn heads_and_bodies_are_bounded() {
    let (tools, gate) = sound().await;
    let agent = Agent::modern("s");
    let large = agent.request(
        "1",
        "tools/call",
        &format!(
            r#""name":"get_weather","arguments":{{"a":"{}"}}"#,
            "x".repeat(1 << 20)
        ),
    );
    check(
        "413",
        &gate.send(large).await,
        (413, 0, "listen.body_too_large"),
    );
    let head = agent
        .call("1", "get_weather")
        .with("X-Long", &"x".repeat(70_000));
    let reply = gate.send(head).await;
    assert_eq!(reply.status, 431);
    let bytes = b"POST /mcp/s HTTP/9.9\r\n\r\n";
    let reply = Exchange::begin(gate.connect().await, bytes)
        .await
        .unwrap()
        .whole()
        .await;
    assert_eq!(reply.status, 400);
    let short = agent.call("1", "get_weather").bytes("x");
    drop(Exchange::unanswered(gate.connect().await, &short[..short.len() - 9]).await);
    crate::support::gate::eventually("the cut body's record", || {
        crate::support::gate::ends(&gate.records()).len() >= 4
    })
    .await;
    let ended = stop(gate).await;
    assert_eq!(
        ended[..3],
        [
            "request refused listen.body_too_large",
            "request refused listen.head_too_large",
            "request refused listen.bad_head"
        ]
    );
    assert_eq!(tools.of("tools/call").len(), 1);
}
