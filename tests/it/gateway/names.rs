//! Names of tools, and what is counted of calls.

use super::{Agent, before, stop};
use crate::support::{sound as say, tools::Seen};

#[tokio::test]
async fn tools_of_any_name_are_found() {
    const NAME: &str = "get_wéather ☂";
    let script = |seen: &Seen| {
        let list = r#"{"tools":[{"name":"get_w\u00e9ather \u2602"},{"name":"get_weather"}]}"#;
        (seen.method() == "tools/list").then(|| say::result(seen.modern(), list))
    };
    let (tools, gate) = before(script, "").await;
    let coded = "=?base64?Z2V0X3fDqWF0aGVyIOKYgg==?=";
    for agent in Agent::both("s", &gate).await {
        let ask = agent.call("1", NAME);
        let ask = if agent.is_modern() {
            ask.set("Mcp-Name", coded)
        } else {
            ask
        };
        let reply = gate.send(ask).await;
        assert_eq!(
            reply.json()["result"]["content"][0]["text"],
            format!("ok {NAME}"),
            "{}",
            reply.body
        );
    }
    assert_eq!(tools.of("tools/call")[0].header("mcp-name"), Some(coded));
    let legacy = Agent::modern("s").legacy(&gate).await;
    let bare = gate
        .send(legacy.post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#))
        .await;
    assert_eq!(
        bare.json()["result"]["tools"].as_array().unwrap().len(),
        2,
        "{}",
        bare.body
    );
    Agent::modern("s").good(&gate).await;
    let records = gate.stop().await;
    assert_eq!(
        records
            .iter()
            .filter(|record| record["tool"] == NAME)
            .count(),
        2
    );
}

/// What the operator watches rises with what happens.
#[tokio::test]
async fn metrics_count_calls_and_connections() {
    let (_tools, gate) = before(|_| None, "").await;
    let agent = Agent::modern("s");
    agent.good(&gate).await;
    agent.good(&gate).await;
    gate.send(agent.call("1", "delete_all")).await;
    // Discovery and list come before the first call, and all share one connection.
    for (name, value) in [
        (
            r#"tollgate_gateway_calls_total{outcome="allowed",code=""}"#,
            2,
        ),
        (
            r#"tollgate_gateway_calls_total{outcome="refused",code="approval.unavailable"}"#,
            1,
        ),
        (r#"tollgate_egress_connections_total{reused="false"}"#, 1),
        (r#"tollgate_egress_connections_total{reused="true"}"#, 3),
        (r#"tollgate_listen_requests_total{status_class="2xx"}"#, 3),
        (r#"tollgate_audit_records_total{kind="call"}"#, 3),
    ] {
        assert_eq!(gate.metric(name), value, "{name}");
    }
    stop(gate).await;
}
