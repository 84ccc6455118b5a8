//! TLS on both legs.

use super::ends;
use crate::support::{
    agent::Agent,
    certs::Authority,
    gate::{Gate, Policy},
    tools::Tools,
};

fn trusting(policy: Policy, name: &str, tools: &Tools, ca: &Authority) -> Policy {
    let port = tools.address.port();
    policy
        .at(
            name,
            &format!("https://localhost:{port}/mcp"),
            port,
            &format!("ca = [\"{name}.pem\"]"),
            "",
        )
        .file(&format!("servers/{name}.pem"), ca.pem())
}

#[tokio::test]
async fn a_call_goes_over_tls_on_both_legs() {
    let (inside, outside) = (Authority::new(), Authority::new());
    let tools = Tools::tls(inside.acceptor(&["localhost"])).await;
    let (certificate, key) = outside.leaf_and_key(&["localhost"]);
    let policy = trusting(Policy::local(""), "s", &tools, &inside)
        .file("tls.crt", certificate)
        .file("tls.key", key);
    let gate = Gate::start_with(
        &policy,
        1,
        r#"tls = { cert = "file:tls.crt", key = "file:tls.key" }"#,
    )
    .over_tls(outside.der());
    for agent in Agent::both("s", &gate).await {
        agent.good(&gate).await;
        let reply = gate.send(agent.call("1", "send_mail")).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "ok send_mail");
    }
    let records = gate.stop().await;
    assert_eq!(
        ends(&records),
        [
            "request allowed",
            "request allowed",
            "call allowed",
            "call intent",
            "call allowed",
            "call allowed",
            "call intent",
            "call allowed"
        ]
    );
    let call = records.iter().find(|record| record["kind"] == "call");
    assert_eq!(call.unwrap()["target"]["host"], "localhost");
}

#[tokio::test]
async fn servers_that_cannot_prove_their_name_are_not_spoken_to() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let good = Tools::tls(ours.acceptor(&["localhost"])).await;
    let wrong_name = Tools::tls(ours.acceptor(&["other.example"])).await;
    let unknown_root = Tools::tls(theirs.acceptor(&["localhost"])).await;
    let expired = Tools::tls(ours.expired(&["localhost"])).await;
    let mut policy = trusting(Policy::local(""), "s", &good, &ours);
    let bad = [
        ("name", &wrong_name),
        ("root", &unknown_root),
        ("expired", &expired),
    ];
    for (name, tools) in bad {
        policy = trusting(policy, name, tools, &ours);
    }
    let gate = Gate::start(&policy);
    for (name, tools) in bad {
        let agent = Agent::modern(name);
        let reply = gate.send(agent.call("1", "get_weather")).await;
        assert_eq!(agent.refusal(&reply), "egress.tls_failed");
        let reply = gate.send(agent.initialize("2025-11-25")).await;
        assert_eq!(
            reply.json()["error"]["data"]["code"],
            "egress.tls_failed",
            "{}",
            reply.body
        );
        assert!(tools.seen().is_empty());
    }
    let ended = super::stop(gate).await;
    let both = [
        "call failed egress.tls_failed",
        "request failed egress.tls_failed",
    ];
    assert_eq!(ended, [both, both, both].concat());
}

/// An agent that speaks plain HTTP to a TLS listener gets no answer, and a record.
#[tokio::test]
async fn plain_agents_are_refused_by_a_tls_listener() {
    let authority = Authority::new();
    let tools = Tools::start(|_| None).await;
    let (certificate, key) = authority.leaf_and_key(&["localhost"]);
    let policy = Policy::local("")
        .server("s", tools.address, "", "")
        .file("tls.crt", certificate)
        .file("tls.key", key);
    let gate = Gate::start_with(
        &policy,
        1,
        r#"tls = { cert = "file:tls.crt", key = "file:tls.key" }"#,
    );
    let plain = gate.connect().await;
    let bytes = Agent::modern("s")
        .call("1", "get_weather")
        .bytes("localhost");
    let answer = crate::support::client::Exchange::begin(plain, &bytes).await;
    assert!(answer.is_none());
    let gate = gate.over_tls(authority.der());
    assert_eq!(
        super::stop(gate).await,
        ["request refused listen.tls_failed"]
    );
    assert_eq!(tools.of("tools/call").len(), 1);
}
