//! Servers that cannot be reached: what is refused for a while, and how they come back.

use super::Agent;
use crate::support::{
    client::Reply,
    gate::{Gate, Policy, ends, eventually, write},
    sound as say,
    tools::{Seen, Step, Tools},
};

const FAILING: &str = "gateway.server_failing";

/// What the metric says of server `s`.
fn open(gate: &Gate) -> Option<String> {
    let name = "tollgate_gateway_server_open{server=\"s\"} ";
    let text = gate.handle.metrics();
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.map(str::to_owned)
}

fn text(reply: &Reply) -> String {
    let body = reply.json();
    let text = body["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{}", reply.body)).to_owned()
}

/// What comes once no try is due: on a slow machine, one may be let through before.
async fn settled(send: impl AsyncFn() -> Reply) -> Reply {
    loop {
        let reply = send().await;
        if reply.body.contains(FAILING) {
            return reply;
        }
        assert!(reply.body.contains("egress."), "{}", reply.body);
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_left_alone_until_it_is_back() {
    let tools = Tools::start(|_| None).await;
    let address = tools.address;
    let policy = Policy::local("").server("s", address, "", "");
    // Two workers: what one finds out, both know.
    let gate = Gate::start_with(&policy, 2, "");
    let [modern, legacy] = Agent::both("s", &gate).await;
    modern.good(&gate).await;
    legacy.good(&gate).await;
    drop(tools);
    // What its kept connections have for a call that meets their end is not known; then no connection comes about.
    let mut refused = 0;
    for at in 0.. {
        let agent = [&modern, &legacy][at % 2];
        let reply = gate.send(agent.call("1", "send_mail")).await;
        match &*agent.refusal(&reply) {
            "egress.connect_failed" => refused += 1,
            "egress.connection_lost" => {}
            code => {
                assert_eq!(code, FAILING);
                assert!(refused >= 5, "{refused}");
                let said = text(&reply);
                assert!(said.contains("has been failing for "), "{said}");
                assert!(said.contains("the next try is made in "), "{said}");
                break;
            }
        }
    }
    assert_eq!(open(&gate).as_deref(), Some("1"));
    let status = gate.handle.status();
    assert_eq!(
        (&*status.failing[0].server, &status.failing[0].user),
        ("s", &None)
    );
    let count = |end: &str| {
        let ended = ends(&gate.records());
        ended.iter().filter(|found| *found == end).count()
    };
    let refusal = format!("call refused {FAILING}");
    eventually("the refusal is recorded", || count(&refusal) == 1).await;
    // Each of those that failed had an intent; what was refused had none.
    let lost = count("call failed egress.connection_lost");
    assert_eq!(count("call intent"), refused + lost);

    let back = Tools::start_at(address).await;
    let agent = &modern;
    loop {
        let reply = gate.send(agent.call("1", "get_weather")).await;
        let said = text(&reply);
        if said == "ok get_weather" {
            break;
        }
        assert!(said.starts_with(FAILING), "{said}");
    }
    assert_eq!(open(&gate).as_deref(), Some("0"));
    assert!(gate.handle.status().failing.is_empty());
    assert_eq!(back.of("tools/call").len(), 1);
    gate.stop().await;
}

/// Lists, sessions and everything else of a server that is out of reach are refused at once too, each in its own shape.
#[tokio::test]
async fn everything_that_asks_the_server_is_refused() {
    let tools = Tools::start(|_| None).await;
    let policy = Policy::local("").server("s", tools.address, "era = \"modern\"", "");
    let gate = Gate::start(&policy);
    let agent = Agent::modern("s");
    drop(tools);
    for _ in 0..5 {
        let reply = gate.send(agent.request("1", "tools/list", "")).await;
        assert_eq!(
            reply.json()["error"]["data"]["code"],
            "egress.connect_failed"
        );
    }
    for (method, params) in [
        ("tools/list", ""),
        ("resources/templates/list", ""),
        ("resources/read", r#""uri":"a:b""#),
        ("resources/list", ""),
        ("server/discover", ""),
    ] {
        let ask = agent.request("1", method, params);
        let ask = match method {
            "resources/read" => ask.with("Mcp-Name", "a:b"),
            _ => ask,
        };
        let reply = settled(async || gate.send(ask.clone()).await).await;
        let error = &reply.json()["error"];
        assert_eq!(
            (reply.status, &error["code"], &error["data"]["code"]),
            (200, &(-32603).into(), &FAILING.into()),
            "{method}"
        );
    }
    let reply = settled(async || gate.send(agent.call("1", "get_weather")).await).await;
    assert_eq!(agent.refusal(&reply), FAILING);
    gate.stop().await;
}

/// A server that was moved is another, and is asked at once.
#[tokio::test]
async fn another_address_is_asked_at_once() {
    let gone = Tools::start(|_| None).await;
    let tools = Tools::start(|_| None).await;
    let policy = Policy::local("")
        .server("s", gone.address, "era = \"modern\"", "")
        .server("t", tools.address, "", "");
    let gate = Gate::start(&policy);
    let agent = Agent::modern("s");
    let from = gone.address.to_string();
    drop(gone);
    for _ in 0..5 {
        let reply = gate.send(agent.call("1", "get_weather")).await;
        assert_eq!(agent.refusal(&reply), "egress.connect_failed");
    }
    assert_eq!(open(&gate).as_deref(), Some("1"));
    let file = gate.folder().join("servers/s.toml");
    let moved = std::fs::read_to_string(&file).unwrap();
    write(&file, &moved.replace(&from, &tools.address.to_string()));
    let grants = gate.folder().join("egress.toml");
    let text = std::fs::read_to_string(&grants).unwrap();
    let (_, second_only) = text.rsplit_once("[[private]]").unwrap();
    let both = second_only.replace("\"server:t\"", "\"server:s\", \"server:t\"");
    write(&grants, &format!("[[private]]{both}"));
    gate.handle.reload();
    agent.good(&gate).await;
    assert_eq!(open(&gate), None);
    gate.stop().await;
}

/// Whoever has calls that a server does not answer is refused; everyone else goes on. Calls that their clients leave or
/// cancel are nobody's failure.
#[tokio::test]
async fn calls_that_are_not_answered_shut_the_server_for_nobody_else() {
    let tools = Tools::start(|seen: &Seen| {
        let tool = seen.tool();
        match tool {
            "get_fault" => Some(vec![Step::Hang]),
            "send_mail" => Some(say::status(500, "text/plain", "")),
            _ => None,
        }
    })
    .await;
    let keys = [
        (
            "tg_one",
            "agent = \"one\"\ntenant = \"default\"\nuser = \"ann\"",
        ),
        (
            "tg_two",
            "agent = \"two\"\ntenant = \"default\"\nuser = \"bob\"",
        ),
    ];
    let limits = "access = \"everyone\"";
    let policy = Policy::keys(&keys, "");
    let short = "[limits]\nfirst_byte = \"500ms\"\n";
    let gate = Gate::start(&policy.server("s", tools.address, limits, short));
    let [ann, bob] = ["tg_one", "tg_two"].map(|key| Agent::modern("s").with_key(key));
    ann.good(&gate).await;
    for _ in 0..6 {
        let reply = gate.send(bob.call("1", "send_mail")).await;
        assert_eq!(bob.refusal(&reply), "upstream.status");
    }
    bob.good(&gate).await;
    for _ in 0..5 {
        let reply = gate.send(ann.call("1", "get_fault")).await;
        assert_eq!(ann.refusal(&reply), "egress.first_byte_timeout");
    }
    let reply = settled(async || gate.send(ann.call("1", "get_fault")).await).await;
    assert_eq!(ann.refusal(&reply), FAILING);
    bob.good(&gate).await;
    assert_eq!(open(&gate), None);
    let failing = gate.handle.status().failing;
    assert_eq!(failing[0].user.as_deref(), Some("ann"));
    loop {
        let reply = gate.send(ann.call("1", "get_weather")).await;
        if text(&reply) == "ok get_weather" {
            break;
        }
    }
    eventually("the circuit is closed", || {
        gate.handle.status().failing.is_empty()
    })
    .await;
    gate.stop().await;
}
