//! Lists of tools that are wrong, long, or without end.

use serde_json::json;

use super::{Agent, SHORT, before};
use crate::support::{
    gate::ends,
    sound,
    tools::{Seen, Step},
};

/// Before a server whose lists are answered by `steps`, lists are JSON-RPC errors and calls are refused.
async fn fails(steps: Vec<Step>, code: &str) {
    let script = move |seen: &Seen| (seen.method() == "tools/list").then(|| steps.clone());
    let (tools, gate) = before(script, SHORT).await;
    for agent in Agent::both("s", &gate).await {
        let reply = gate.send(agent.request("\"l\"", "tools/list", "")).await;
        let body = reply.json();
        assert_eq!(reply.status, 200);
        assert_eq!(
            (&body["id"], &body["error"]["code"]),
            (&json!("l"), &json!(-32603)),
            "{code}: {body}"
        );
        assert_eq!(body["error"]["data"]["code"], code);
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{code}: ")), "{message}");
        let reply = gate.send(agent.call("2", "get_weather")).await;
        assert_eq!(agent.refusal(&reply), code, "{}", reply.body);
    }
    assert_eq!(tools.of("tools/call").len(), 0);
    let ended = ends(&gate.stop().await);
    let both = [format!("list failed {code}"), format!("call failed {code}")];
    assert_eq!(ended[2..], [both.clone(), both].concat());
}

#[tokio::test]
async fn lists_that_are_no_lists() {
    for list in [
        r#"{"tools":{}}"#,
        r#"{"other":[]}"#,
        r#"{"tools":[{"name":"get_weather"},{"name":7}]}"#,
        r#"{"tools":[{"name":"get_weather","name":"send_mail"}]}"#,
        r#"{"tools":[],"tools":[{"name":"get_weather"}]}"#,
        r#"{"tools":[],"nextCursor":7}"#,
    ] {
        fails(sound::result(true, list), "upstream.malformed").await;
    }
}

#[tokio::test]
async fn lists_that_do_not_come() {
    fails(vec![Step::Hang], "egress.first_byte_timeout").await;
    fails(vec![Step::Reset], "egress.connection_lost").await;
    fails(sound::status(500, "text/plain", ""), "upstream.status").await;
    fails(
        sound::status(302, "text/plain", ""),
        "egress.redirect_refused",
    )
    .await;
    fails(sound::events(&[]), "upstream.no_answer").await;
    fails(
        sound::json(&sound::message(true, sound_list()).replace("$ID", "\"$ID\"")),
        "upstream.wrong_id",
    )
    .await;
}

fn sound_list() -> &'static str {
    crate::support::tools::LIST
}

#[tokio::test]
async fn an_error_instead_of_a_list_is_the_servers_own() {
    const ERROR: &str = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"down"}}"#;
    let script = |seen: &Seen| (seen.method() == "tools/list").then(|| sound::json(ERROR));
    let (_tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        let reply = gate.send(agent.request("1", "tools/list", "")).await;
        assert_eq!(reply.body, ERROR.replace("$ID", "1"));
        let reply = gate.send(agent.call("2", "get_weather")).await;
        assert_eq!(agent.refusal(&reply), "upstream.malformed");
    }
    gate.stop().await;
}

/// A list in a stream is a list.
#[tokio::test]
async fn a_streamed_list_is_answered_whole() {
    let script = |seen: &Seen| {
        let list = sound::message(seen.modern(), sound_list());
        (seen.method() == "tools/list").then(|| {
            sound::events(&[
                r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#,
                &list,
            ])
        })
    };
    let (_tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        let reply = gate.send(agent.request("1", "tools/list", "")).await;
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_eq!(reply.json()["result"]["tools"].as_array().unwrap().len(), 4);
        agent.good(&gate).await;
    }
    super::stop(gate).await;
}

#[tokio::test]
async fn pages_are_read_to_the_end_to_find_a_tool() {
    let script = |seen: &Seen| {
        let page = match seen.json["params"]["cursor"].as_str() {
            None => r#"{"tools":[{"name":"get_a"}],"nextCursor":""}"#,
            Some("") => r#"{"tools":[{"name":"get_b"}],"nextCursor":"\u0063\"d"}"#,
            Some("c\"d") => r#"{"tools":[{"name":"get_weather"}]}"#,
            Some(other) => panic!("{other}"),
        };
        (seen.method() == "tools/list").then(|| sound::result(seen.modern(), page))
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s");
    agent.good(&gate).await;
    assert_eq!(tools.of("tools/list").len(), 3);
    let reply = gate
        .send(agent.request("1", "tools/list", r#""cursor":"""#))
        .await;
    assert_eq!(
        reply.body,
        r#"{"jsonrpc":"2.0","id":1,"result":{"ttlMs":0,"cacheScope":"private","resultType":"complete","tools":[{"name":"get_b"}],"nextCursor":"\u0063\"d"}}"#
    );
    super::stop(gate).await;
}

/// As soon as there are too many, not once all have been read.
#[tokio::test]
async fn more_tools_than_can_be_known_are_given_up() {
    let script = |seen: &Seen| {
        let page = seen.json["params"]["cursor"]
            .as_str()
            .unwrap_or("0")
            .parse::<usize>()
            .unwrap();
        let tools: Vec<_> = (0..8_000)
            .map(|tool| format!(r#"{{"name":"get_{page}_{tool}"}}"#))
            .collect();
        let list = format!(
            r#"{{"tools":[{}],"nextCursor":"{}"}}"#,
            tools.join(","),
            page + 1
        );
        (seen.method() == "tools/list").then(|| sound::result(seen.modern(), &list))
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s");
    let reply = gate.send(agent.call("2", "get_weather")).await;
    assert_eq!(agent.refusal(&reply), "catalog.too_large");
    assert_eq!(tools.of("tools/list").len(), 3);
    gate.stop().await;
}

#[tokio::test]
async fn pages_without_end_are_given_up() {
    let script = |seen: &Seen| {
        let page = r#"{"tools":[{"name":"get_a"}],"nextCursor":"again"}"#;
        (seen.method() == "tools/list").then(|| sound::result(seen.modern(), page))
    };
    let (tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        let before = tools.of("tools/list").len();
        let reply = gate.send(agent.call("2", "get_weather")).await;
        assert_eq!(agent.refusal(&reply), "catalog.too_large");
        assert_eq!(tools.of("tools/list").len(), before + 256);
    }
    assert_eq!(tools.of("tools/call").len(), 0);
    gate.stop().await;
}
