//! Bodies that are no JSON-RPC, or that two parsers need not read alike.

use serde_json::json;

use super::{input::refused, sound, stop};
use crate::support::{agent::Agent, client::Ask};

/// Bodies that no two parsers need read alike, or that are no JSON; each with what is refused.
fn bodies() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let with = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"get_weather","arguments":{arguments},{META}}}}}"#
        )
    };
    let ambiguous = "mcp.ambiguous";
    let parse = "mcp.parse_error";
    let invalid = "mcp.invalid_request";
    let deep = |depth: usize| {
        with(&format!(
            "{}1{}",
            r#"{"a":"#.repeat(depth),
            "}".repeat(depth)
        ))
    };
    let id = |id: &str| with("{}").replace(r#""x""#, id).into_bytes();
    let mut cut = with("{}").into_bytes();
    cut.truncate(50);
    let mut latin = with(r#"{"a":"?"}"#).into_bytes();
    let at = latin.iter().position(|byte| *byte == b'?').unwrap();
    latin[at] = 0xe9;
    vec![
        ("duplicate key", with(r#"{"a":1,"a":1}"#).into(), ambiguous),
        (
            "escaped duplicate key",
            with(r#"{"a":1,"\u0061":2}"#).into(),
            ambiguous,
        ),
        (
            "deep duplicate key",
            with(r#"{"a":[{"b":{"c":1,"d":2,"c":3}}]}"#).into(),
            ambiguous,
        ),
        (
            "two names",
            with(r#"{},"name":"send_mail""#).into(),
            ambiguous,
        ),
        (
            "two methods",
            with("{}").replacen('{', r#"{"method":"ping","#, 1).into(),
            ambiguous,
        ),
        (
            "lone surrogate",
            with(r#"{"a":"\ud800"}"#).into(),
            ambiguous,
        ),
        (
            "lone surrogate in a key",
            with(r#"{"\udc00":1}"#).into(),
            ambiguous,
        ),
        ("infinite", with(r#"{"a":1e400}"#).into(), ambiguous),
        (
            "beyond u64",
            with(r#"{"a":18446744073709551616}"#).into(),
            ambiguous,
        ),
        (
            "beyond i64",
            with(r#"{"a":-9223372036854775809}"#).into(),
            ambiguous,
        ),
        ("65 deep", deep(63).into(), ambiguous),
        ("cut", cut, parse),
        ("empty", Vec::new(), parse),
        ("words", b"hello".to_vec(), parse),
        (
            "trailing garbage",
            format!("{} x", with("{}")).into(),
            parse,
        ),
        ("two messages", with("{}").repeat(2).into(), parse),
        ("invalid UTF-8", latin, parse),
        ("leading zero", with(r#"{"a":01}"#).into(), parse),
        ("control character", with("{\"a\":\"\n\"}").into(), parse),
        ("batch", format!("[{}]", with("{}")).into(), "mcp.batch"),
        ("empty batch", b"[]".to_vec(), "mcp.batch"),
        ("a number", b"7".to_vec(), invalid),
        ("null id", id("null"), invalid),
        ("float id", id("1.0"), invalid),
        ("exponent id", id("1e2"), invalid),
        ("bool id", id("true"), invalid),
        ("object id", id("{}"), invalid),
        ("array id", id("[1]"), invalid),
        (
            "other version",
            with("{}").replace("\"2.0\"", "\"1.0\"").into(),
            invalid,
        ),
        (
            "method and result",
            with("{}").replacen('{', r#"{"result":{},"#, 1).into(),
            invalid,
        ),
        (
            "array as params",
            br#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":[1]}"#.to_vec(),
            "mcp.invalid_params",
        ),
    ]
}

#[tokio::test]
async fn bodies_that_can_be_read_two_ways_are_refused() {
    let (tools, gate) = sound().await;
    let legacy = Agent::modern("s").legacy(&gate).await;
    let mut cases = Vec::new();
    for (what, body, code) in bodies() {
        let (status, number) = match code {
            "mcp.parse_error" => (400, -32700),
            "mcp.invalid_params" => (200, -32602),
            _ => (400, -32600),
        };
        let modern = Ask::post("/mcp/s", body.clone())
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", "tools/call")
            .with("Mcp-Name", "get_weather");
        cases.push((what, modern, (400, number, code)));
        let legacy = Ask::post("/mcp/s", body)
            .with("MCP-Protocol-Version", "2025-11-25")
            .with("Mcp-Session-Id", legacy.session.as_deref().unwrap());
        cases.push((what, legacy, (status, number, code)));
    }
    refused(gate, &tools, cases).await;
}

/// What was readable of the id is echoed, and nothing else.
#[tokio::test]
async fn errors_name_the_request_where_it_can_be_read() {
    let (_tools, gate) = sound().await;
    let mut named = 0;
    for (what, body, _) in bodies() {
        let reply = gate.send(Ask::post("/mcp/s", body)).await.json();
        let id = reply.get("id");
        assert!([None, Some(&json!("x"))].contains(&id), "{what}: {reply}");
        named += usize::from(id.is_some());
    }
    assert!(named >= 12, "{named}");
    stop(gate).await;
}
