//! Arguments that a tool has its callers mirror in headers, and tools that cannot be offered for how they do it.

use serde_json::json;

use super::{Agent, before, input, stop};
use crate::support::{
    client::Ask,
    gate::ends,
    sound,
    tools::{Latch, Seen},
};

/// What `get_rows` mirrors.
const ROWS: &str = concat!(
    r#"{"name":"get_rows","inputSchema":{"type":"object","properties":{"#,
    r#""region":{"type":"string","x-mcp-header":"Region"},"query":{"type":"string"},"#,
    r#""options":{"type":"object","properties":{"#,
    r#""limit":{"type":"integer","x-mcp-header":"Limit"},"#,
    r#""dry":{"x-mcp-h\u0065ader":"Dry-Run","type":"boolean"}}}}}}"#
);
const WEATHER: &str = r#"{"name":"get_weather","inputSchema":{"type":"object"},"x-odd":1.0}"#;
/// Its annotation is the end of one header and the beginning of another.
const EVIL: &str = concat!(
    r#"{"name":"get_evil","inputSchema":{"type":"object","properties":{"#,
    r#""a":{"type":"string","x-mcp-header":"X\r\nEvil: 1"}}}}"#
);
const TASK: &str = r#"{"name":"get_task","execution":{"taskSupport":"required"},"inputSchema":{}}"#;

/// A list of these tools, which any cache may keep.
fn list(tools: &[&str]) -> String {
    let tools = tools.join(" , ");
    format!(r#"{{"tools":[ {tools} ],"ttlMs":5,"cacheScope":"public"}}"#)
}

fn lists(tools: &[&str]) -> impl Fn(&Seen) -> Option<Vec<crate::support::tools::Step>> {
    let list = list(tools);
    move |seen| (seen.method() == "tools/list").then(|| sound::result(seen.modern(), &list))
}

/// A call of `get_rows`.
fn rows(agent: &Agent, arguments: &str) -> Ask {
    let params = format!(r#""name":"get_rows","arguments":{{{arguments}}}"#);
    agent.request("1", "tools/call", &params)
}

#[tokio::test]
async fn headers_that_say_what_the_arguments_say_go_on_as_they_came() {
    let (tools, gate) = before(lists(&[WEATHER, ROWS]), "").await;
    let agent = Agent::modern("s");
    let full = r#""region":"Hello, 世界","options":{"limit":42,"dry":false}"#;
    let asks = [
        rows(&agent, full)
            .with("Mcp-Param-Region", "=?base64?SGVsbG8sIOS4lueVjA==?=")
            .with("mcp-param-LIMIT", "42.0")
            .with("Mcp-Param-Dry-Run", "false")
            .with("Mcp-Param-Unknown", "=?base64?kept as it is"),
        rows(&agent, r#""region":"","query":"x""#).with("Mcp-Param-Region", ""),
        rows(&agent, r#""options":{}"#),
        agent.request("1", "tools/call", r#""name":"get_rows""#),
    ];
    for ask in asks {
        let reply = gate.send(ask).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(reply.json()["result"]["content"][0]["text"], "ok get_rows");
    }
    let seen = tools.of("tools/call");
    for (name, value) in [
        ("mcp-param-region", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ("mcp-param-limit", "42.0"),
        ("mcp-param-dry-run", "false"),
        ("mcp-param-unknown", "=?base64?kept as it is"),
    ] {
        assert_eq!(seen[0].header(name), Some(value), "{name}");
    }
    assert_eq!(seen[1].header("mcp-param-region"), Some(""));
    assert_eq!(seen[2].header("mcp-param-region"), None);
    assert_eq!(stop(gate).await, ["call allowed"; 4]);
}

#[tokio::test]
async fn headers_that_say_something_else_are_refused() {
    let (tools, gate) = before(lists(&[WEATHER, ROWS]), "").await;
    let agent = Agent::modern("s");
    let (region, limit) = ("Mcp-Param-Region", "Mcp-Param-Limit");
    let eu = || rows(&agent, r#""region":"eu""#);
    let with_limit = |number: &str| rows(&agent, &format!(r#""options":{{"limit":{number}}}"#));
    let mismatch = (400, -32020, "mcp.header_mismatch");
    let cases = vec![
        ("the list is read first", eu().with(region, "us"), mismatch),
        ("missing", eu(), mismatch),
        ("empty", eu().with(region, ""), mismatch),
        ("another case", eu().with(region, "EU"), mismatch),
        ("no value", rows(&agent, "").with(region, "eu"), mismatch),
        (
            "null",
            rows(&agent, r#""region":null"#).with(region, "null"),
            mismatch,
        ),
        (
            "no arguments",
            agent
                .request("1", "tools/call", r#""name":"get_rows""#)
                .with(region, "eu"),
            mismatch,
        ),
        (
            "another place",
            rows(&agent, r#""options":{"region":"eu"}"#).with(region, "eu"),
            mismatch,
        ),
        ("bad base64", eu().with(region, "=?base64?ZXU?="), mismatch),
        ("no UTF-8", eu().with(region, "=?base64?/w==?="), mismatch),
        (
            "no ASCII",
            rows(&agent, r#""region":"é""#).with(region, "é"),
            mismatch,
        ),
        (
            "a look-alike that is not encoded",
            rows(&agent, r#""region":"=?base64?ZXU=?=""#).with(region, "=?base64?ZXU=?="),
            mismatch,
        ),
        (
            "twice",
            eu().with(region, "eu").with(region, "eu"),
            (400, -32020, "mcp.header_duplicate"),
        ),
        (
            "another number",
            with_limit("42").with(limit, "43"),
            mismatch,
        ),
        ("no number", with_limit("42").with(limit, "0x2a"), mismatch),
        ("no integer", with_limit("1.5").with(limit, "1.5"), mismatch),
        (
            "too large",
            with_limit("9007199254740992").with(limit, "9007199254740992"),
            mismatch,
        ),
        ("an array", with_limit("[42]").with(limit, "42"), mismatch),
        (
            "an escaped annotation",
            rows(&agent, r#""options":{"dry":true}"#).with("Mcp-Param-Dry-Run", "True"),
            mismatch,
        ),
        (
            "another tool",
            agent.call("1", "printEnv").set("Mcp-Name", "echo"),
            mismatch,
        ),
    ];
    input::refused(gate, &tools, cases).await;
}

/// The answer names the header; what was in it or in the arguments goes nowhere.
#[tokio::test]
async fn refusals_show_no_values() {
    let (_tools, gate) = before(lists(&[WEATHER, ROWS]), "").await;
    let agent = Agent::modern("s");
    let ask = rows(&agent, r#""region":"tg-body-value""#).with("Mcp-Param-Region", "tg-head-value");
    let reply = gate.send(ask).await;
    assert_eq!(
        reply.json()["error"]["message"],
        "mcp.header_mismatch: header `mcp-param-region` does not say what the arguments say; make the headers say what the body says"
    );
    let records = gate.stop().await;
    assert_eq!(ends(&records), ["call refused mcp.header_mismatch"]);
    let call = records
        .iter()
        .find(|record| record["kind"] == "call")
        .unwrap();
    assert_eq!(call["tool"], "get_rows");
    for value in ["tg-body-value", "tg-head-value"] {
        assert!(!json!(records).to_string().contains(value));
    }
}

/// Another annotation is another definition.
#[tokio::test]
async fn a_tool_whose_annotation_changes_is_blocked_from_the_next_list_on() {
    let changed = Latch::new();
    let server = changed.clone();
    let script = move |seen: &Seen| {
        let rows = match server.is_open() {
            true => ROWS.replace("Region", "Zone"),
            false => ROWS.to_owned(),
        };
        let list = list(&[WEATHER, &rows]);
        (seen.method() == "tools/list").then(|| sound::result(seen.modern(), &list))
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s");
    let [region, zone] = ["Mcp-Param-Region", "Mcp-Param-Zone"]
        .map(|name| rows(&agent, r#""region":"eu""#).with(name, "eu"));
    assert_eq!(gate.send(region.clone()).await.status, 200);
    changed.open();
    assert_eq!(gate.send(zone.clone()).await.status, 400);
    let fresh = gate.send(agent.request("1", "tools/list", "")).await;
    assert_eq!(fresh.status, 200);
    for call in [zone, region] {
        assert_eq!(agent.refusal(&gate.send(call).await), "catalog.drifted");
    }
    assert_eq!(tools.of("tools/call").len(), 1);
    gate.stop().await;
}

#[tokio::test]
async fn a_tool_with_invalid_annotations_is_left_out_for_modern_callers_only() {
    let (tools, gate) = before(lists(&[WEATHER, EVIL, ROWS]), "").await;
    let [modern, legacy] = Agent::both("s", &gate).await;
    for _ in 0..2 {
        let reply = gate.send(modern.request("1", "tools/list", "")).await;
        assert_eq!(
            reply.body,
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","tools":[{WEATHER},{ROWS}],"ttlMs":5,"cacheScope":"private"}}}}"#
            )
        );
        let reply = gate.send(modern.call("2", "get_evil")).await;
        assert_eq!(
            reply.json()["error"]["data"]["code"],
            "catalog.tool_unknown"
        );
        let reply = gate.send(legacy.request("1", "tools/list", "")).await;
        assert_eq!(
            reply.body,
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#,
                list(&[WEATHER, EVIL, ROWS])
            )
        );
        for tool in ["get_evil", "get_rows"] {
            let params = format!(r#""name":"{tool}","arguments":{{"region":"eu"}}"#);
            let ask = legacy.request("2", "tools/call", &params);
            let reply = gate.send(ask.with("Mcp-Param-Region", "us")).await;
            assert_eq!(
                reply.json()["result"]["content"][0]["text"],
                format!("ok {tool}")
            );
        }
    }
    let called = tools.of("tools/call");
    assert_eq!(called.len(), 4);
    assert!(called.iter().all(|seen| !seen.modern()));
    stop(gate).await;
}

#[tokio::test]
async fn a_tool_that_needs_tasks_is_left_out() {
    let (tools, gate) = before(lists(&[TASK, WEATHER]), "").await;
    for agent in Agent::both("s", &gate).await {
        let reply = gate.send(agent.request("1", "tools/list", "")).await;
        let body = reply.json();
        assert_eq!(
            body["result"]["tools"].as_array().unwrap().len(),
            1,
            "{body}"
        );
        assert_eq!(body["result"]["tools"][0]["name"], "get_weather");
        if agent.is_modern() {
            assert_eq!(body["result"]["cacheScope"], "private");
        }
        let reply = gate.send(agent.call("2", "get_task")).await;
        assert_eq!(
            reply.json()["error"]["data"]["code"],
            "catalog.tool_unknown"
        );
    }
    assert_eq!(tools.of("tools/call").len(), 0);
    stop(gate).await;
}
