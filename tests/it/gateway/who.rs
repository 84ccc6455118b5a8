//! Who may use what, and that callers are never taken for one another.

use serde_json::json;

use super::{sound, stop};
use crate::support::{
    agent::Agent,
    gate::{Gate, Policy, ends},
    sound as say,
    tools::Tools,
};

const ANN: &str = "tg_ann_0123456789";
const BOB: &str = "tg_bob_0123456789";
const EVE: &str = "tg_eve_0123456789";

fn keys() -> Policy {
    Policy::keys(
        &[
            (ANN, "agent = \"a\"\nuser = \"ann\""),
            (BOB, "agent = \"b\"\nuser = \"bob\""),
            (EVE, "agent = \"e\"\nuser = \"eve\"\ntenant = \"other\""),
        ],
        "",
    )
}

#[tokio::test]
async fn only_what_nobody_need_be_asked_for_runs() {
    let (tools, gate) = sound().await;
    for agent in Agent::both("s", &gate).await {
        agent.good(&gate).await;
        let reply = gate.send(agent.call("2", "send_mail")).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "ok send_mail");
        let reply = gate.send(agent.call("3", "delete_all")).await;
        assert_eq!(agent.refusal(&reply), "approval.unavailable");
        for unknown in ["get_hidden", "get_nothing"] {
            let reply = gate.send(agent.call("4", unknown)).await;
            let message = format!(
                "catalog.tool_unknown: no tool `{unknown}` on server `s`; call tools/list for the tools that are offered"
            );
            assert_eq!(reply.status, 200);
            assert_eq!(
                reply.json(),
                json!({"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":message,"data":{
                    "code":"catalog.tool_unknown","remedy":"call tools/list for the tools that are offered"}}})
            );
        }
    }
    let called: Vec<_> = tools
        .of("tools/call")
        .iter()
        .map(|seen| seen.tool().to_owned())
        .collect();
    assert_eq!(
        called,
        ["get_weather", "send_mail", "get_weather", "send_mail"]
    );
    let each = [
        "call allowed",
        "call intent",
        "call allowed",
        "call refused approval.unavailable",
        "call refused catalog.tool_unknown",
        "call refused catalog.tool_unknown",
    ];
    let expected = [&["request allowed", "request allowed"][..], &each, &each].concat();
    assert_eq!(stop(gate).await, expected);
}

#[tokio::test]
async fn servers_of_others_look_like_servers_that_do_not_exist() {
    let tools = Tools::start(|_| None).await;
    let policy = keys()
        .server("admins", tools.address, "tenants = [\"default\"]", "")
        .server(
            "open",
            tools.address,
            "access = \"everyone\"\ntenants = [\"default\"]",
            "",
        )
        .server(
            "theirs",
            tools.address,
            "access = \"everyone\"\ntenants = [\"other\"]",
            "",
        );
    let gate = Gate::start(&policy);
    let unknown = |server: &str| {
        json!({"error":{"code":"policy.server_unknown","message":format!("no server `{server}`"),
            "remedy":"use the name of a server that the operator registered and opened to you"}})
    };
    for (key, usable) in [
        (ANN, &["admins", "open"][..]),
        (BOB, &["open"]),
        (EVE, &["theirs"]),
    ] {
        for server in ["admins", "open", "theirs", "none"] {
            let agent = Agent::modern(server).with_key(key);
            if usable.contains(&server) {
                agent.good(&gate).await;
                continue;
            }
            for ask in [
                agent.call("1", "get_weather"),
                agent.initialize("2025-11-25"),
                agent.bare("GET"),
            ] {
                let reply = gate.send(ask).await;
                assert_eq!(
                    (reply.status, reply.json()),
                    (404, unknown(server)),
                    "{key} {server}"
                );
            }
        }
    }
    let records = gate.stop().await;
    let count = |end: &str| ends(&records).iter().filter(|found| *found == end).count();
    assert_eq!(count("call allowed"), 4);
    assert_eq!(count("request refused policy.server_unknown"), 24);
    assert_eq!(tools.of("tools/call").len(), 4);
    let eve = records
        .iter()
        .find(|record| record["user"] == "eve")
        .unwrap();
    assert_eq!(
        (&eve["tenant"], &eve["agent"]),
        (&json!("other"), &json!("e"))
    );
}

#[tokio::test]
async fn evidence_is_asked_for_on_every_request() {
    let tools = Tools::start(|_| None).await;
    let gate = Gate::start(&keys().server("s", tools.address, "tenants = [\"default\"]", ""));
    let ann = Agent::modern("s").with_key(ANN).legacy(&gate).await;
    ann.good(&gate).await;
    for (key, code) in [
        (None, "identity.missing"),
        (Some("tg_nobody"), "identity.invalid"),
        (Some("other"), "identity.invalid"),
    ] {
        let agent = Agent {
            key: key.map(str::to_owned),
            ..ann.clone()
        };
        let reply = gate.send(agent.call("1", "get_weather")).await;
        assert_eq!(
            (reply.status, &reply.json()["error"]["code"]),
            (401, &json!(code))
        );
        assert!(
            reply
                .header("www-authenticate")
                .unwrap()
                .starts_with("Bearer")
        );
    }
    ann.good(&gate).await;
    let ended = ends(&gate.stop().await);
    assert_eq!(
        ended[3..],
        [
            "request refused identity.missing",
            "request refused identity.invalid",
            "request refused identity.invalid",
            "call allowed"
        ]
    );
}

/// Every call has the same id and gets its own answer.
#[tokio::test]
async fn callers_with_equal_ids_are_never_crossed() {
    let tools = Tools::start(|seen| {
        (seen.tool() == "get_fault").then(|| {
            let said = seen.json["params"]["arguments"]["who"]
                .as_str()
                .unwrap_or_default();
            let answer = say::message(seen.modern(), &say::text(said));
            match said.len() % 2 {
                0 => say::json(&answer),
                _ => say::events(&[&answer]),
            }
        })
    })
    .await;
    let policy = keys().server(
        "s",
        tools.address,
        "access = \"everyone\"\ntenants = [\"default\"]",
        "",
    );
    let gate = Gate::start_with(&policy, 2, "");
    let mut agents = Vec::new();
    for key in [ANN, BOB] {
        agents.push(Agent::modern("s").with_key(key));
        agents.push(Agent::modern("s").with_key(key).legacy(&gate).await);
        agents.push(Agent::modern("s").with_key(key).legacy(&gate).await);
    }
    for _ in 0..5 {
        let calls = agents.iter().enumerate().map(|(at, agent)| {
            let who = "w".repeat(at + 1);
            let ask = agent.request(
                "1",
                "tools/call",
                &format!(r#""name":"get_fault","arguments":{{"who":"{who}"}}"#),
            );
            let gate = &gate;
            async move { (who, gate.send(ask).await) }
        });
        for (who, reply) in futures_util::future::join_all(calls).await {
            assert_eq!(reply.json()["id"], 1);
            assert_eq!(
                reply.json()["result"]["content"][0]["text"],
                json!(who),
                "{}",
                reply.body
            );
        }
    }
    let sessions: std::collections::HashSet<_> = tools
        .of("tools/call")
        .iter()
        .filter_map(|seen| seen.header("mcp-session-id").map(str::to_owned))
        .collect();
    assert_eq!(
        sessions.len(),
        4,
        "an upstream session of each client session"
    );
    let records = gate.stop().await;
    assert_eq!(
        ends(&records)
            .iter()
            .filter(|end| *end == "call allowed")
            .count(),
        30
    );
}
