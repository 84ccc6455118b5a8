//! Everything that is not tools: it goes through both ways as it is.

use serde_json::json;

use super::{before, stop};
use crate::support::{
    agent::Agent,
    gate::{Gate, Policy},
    sound as say,
    tools::{LIST, Seen, Step, Tools},
};

/// Answers every request with what it asked for.
fn echoing(seen: &Seen) -> Option<Vec<Step>> {
    let skip = ["initialize", "server/discover", "tools/list", "tools/call"];
    if skip.contains(&seen.method()) || seen.json["id"].is_null() {
        return None;
    }
    let method = seen.method();
    let list = match method {
        "prompts/list" => r#","prompts":[{"name":"p"}]"#,
        "resources/templates/list" => r#","resourceTemplates":[]"#,
        _ => "",
    };
    Some(say::result(
        seen.modern(),
        &format!(r#"{{"echo":"{method}","n":1.0{list}}}"#),
    ))
}

const COMMON: [(&str, &str, &str); 7] = [
    ("resources/list", r#""cursor":"c""#, ""),
    ("resources/templates/list", "", ""),
    (
        "resources/read",
        r#""uri":"memo:insights""#,
        "memo:insights",
    ),
    ("prompts/list", "", ""),
    ("prompts/get", r#""name":"p","arguments":{"a":"1"}"#, "p"),
    (
        "completion/complete",
        r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}"#,
        "",
    ),
    ("tools/list", "", ""),
];

const LEGACY: [(&str, &str, &str); 3] = [
    ("logging/setLevel", r#""level":"debug""#, ""),
    ("resources/subscribe", r#""uri":"test://a""#, "test://a"),
    ("resources/unsubscribe", r#""uri":"test://a""#, "test://a"),
];

#[tokio::test]
async fn every_method_reaches_the_server_and_its_answer_the_client() {
    let (tools, gate) = before(echoing, "").await;
    for agent in Agent::both("s", &gate).await {
        let own = if agent.is_modern() { &[][..] } else { &LEGACY };
        for (method, params, name) in COMMON.iter().chain(own) {
            let mut ask = agent.request("\"x\"", method, params);
            if agent.is_modern() && !name.is_empty() {
                ask = ask.set("Mcp-Name", name);
            }
            let reply = gate.send(ask).await;
            assert_eq!(reply.status, 200, "{method}: {}", reply.body);
            assert_eq!(reply.json()["id"], "x", "{method}");
            // Before a first list, Tollgate reads all of it itself.
            let seen = tools.of(method).pop().unwrap();
            let expected = agent.message(&seen.json["id"].to_string(), method, params);
            assert_eq!(seen.text, expected, "{method}");
            if *method == "tools/list" {
                continue;
            }
            assert_eq!(reply.json()["result"]["echo"], *method, "{}", reply.body);
            if agent.is_modern() {
                assert_eq!(seen.header("mcp-method"), Some(*method));
                let mirrored = (!name.is_empty()).then_some(*name);
                assert_eq!(seen.header("mcp-name"), mirrored, "{method}");
            } else {
                let text =
                    format!(r#"{{"jsonrpc":"2.0","id":"x","result":{{"echo":"{method}","n":1.0"#);
                assert!(reply.body.starts_with(&text), "{}", reply.body);
            }
        }
    }
    let records = gate.stop().await;
    let named = |method: &str| {
        let mut found = records.iter().filter(|record| record["method"] == method);
        found.next().expect("a record")["tool"].clone()
    };
    assert_eq!(named("resources/read"), "memo:insights");
    assert_eq!(named("prompts/get"), "p");
    assert_eq!(named("resources/subscribe"), "test://a");
}

/// The server's hints hold, within bounds; where it gives none, nothing is kept.
#[tokio::test]
async fn caching_hints_are_ours() {
    for (method, hints, ttl, scope) in [
        (
            "resources/list",
            r#""ttlMs":1000,"cacheScope":"public""#,
            1000,
            "private",
        ),
        ("resources/list", "", 0, "private"),
        (
            "resources/templates/list",
            r#""resourceTemplates":[],"ttlMs":-5"#,
            0,
            "private",
        ),
        (
            "prompts/list",
            r#""prompts":[],"ttlMs":86400000,"cacheScope":"odd""#,
            300_000,
            "private",
        ),
        (
            "resources/read",
            r#""ttlMs":"9","cacheScope":7"#,
            0,
            "private",
        ),
    ] {
        let script = move |seen: &Seen| {
            (seen.method() == method)
                .then(|| say::result(true, &format!("{{{hints}}}").replace("{}", "{\"x\":1}")))
        };
        let (_tools, gate) = before(script, "").await;
        let agent = Agent::modern("s");
        let ask = agent.request("1", method, r#""uri":"u""#);
        let ask = if method == "resources/read" {
            ask.with("Mcp-Name", "u")
        } else {
            ask
        };
        let reply = gate.send(ask).await;
        let result = &reply.json()["result"];
        assert_eq!(
            (
                &result["ttlMs"],
                &result["cacheScope"],
                &result["resultType"]
            ),
            (&json!(ttl), &json!(scope), &json!("complete")),
            "{method} {hints}: {}",
            reply.body
        );
        stop(gate).await;
    }
}

/// Answers that every caller gets alike may be shared.
#[tokio::test]
async fn what_is_the_same_for_all_may_be_shared() {
    const HINTS: &str = r#""ttlMs":7,"cacheScope":"public""#;
    let script = |seen: &Seen| match seen.method() {
        "prompts/list" => Some(say::result(true, &format!(r#"{{"prompts":[],{HINTS}}}"#))),
        "tools/list" => Some(say::result(
            true,
            &LIST.replacen('{', &format!("{{{HINTS},"), 1),
        )),
        _ => None,
    };
    let tools = Tools::start(script).await;
    let policy = Policy::local("")
        .server("s", tools.address, "access = \"everyone\"", "")
        .server("t", tools.address, "", "");
    let gate = Gate::start(&policy);
    // One tool is hidden, and of `t` only admins get anything.
    for (server, method, scope) in [
        ("s", "prompts/list", "public"),
        ("s", "tools/list", "private"),
        ("t", "prompts/list", "private"),
    ] {
        let reply = gate
            .send(Agent::modern(server).request("1", method, ""))
            .await;
        let result = &reply.json()["result"];
        assert_eq!(result["cacheScope"], scope, "{server} {}", reply.body);
        assert_eq!(result["ttlMs"], 7);
    }
    stop(gate).await;
}

/// An unknown kind of result, and one that asks where asking was not agreed on, are no answers.
#[tokio::test]
async fn results_of_an_unknown_kind_are_refused() {
    let script = |seen: &Seen| {
        (seen.tool() == "get_fault").then(|| {
            say::json(r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"task","taskId":"t"}}"#)
        })
    };
    let (_tools, gate) = before(script, "").await;
    let agent = Agent::modern("s");
    let reply = gate.send(agent.call("1", "get_fault")).await;
    assert_eq!(agent.refusal(&reply), "upstream.malformed");
    // In a session the member means nothing.
    let legacy = agent.legacy(&gate).await;
    let reply = gate.send(legacy.call("1", "get_fault")).await;
    assert_eq!(reply.json()["result"]["taskId"], "t");
    stop(gate).await;
}

/// A server logs for those who asked for it.
#[tokio::test]
async fn logs_reach_who_asked_for_them() {
    const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"d"}}"#;
    let script = |seen: &Seen| {
        let answer = say::message(seen.modern(), &say::text("done"));
        (seen.tool() == "get_fault").then(|| say::events(&[LOG, &answer]))
    };
    let (_tools, gate) = before(script, "").await;
    let quiet = Agent::modern("s");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_fault","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"debug"}}}"#;
    let session = Agent::modern("s").legacy(&gate).await;
    for (ask, logged) in [
        (quiet.call("1", "get_fault"), false),
        (quiet.post(call), true),
        (session.call("1", "get_fault"), true),
    ] {
        let mut reply = gate.open(ask).await;
        let first = reply.event().await.expect("an event");
        assert_eq!(first == LOG, logged, "{first}");
    }
    stop(gate).await;
}
