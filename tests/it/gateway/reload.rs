//! Changed files while calls run.

use tollgate::app::reload::Outcome;

use super::{Agent, before, stop};
use crate::support::{
    gate::{Gate, Policy, eventually, write},
    sound,
    tools::{Latch, Seen, Step, Tools},
};

fn server_file(gate: &Gate) -> std::path::PathBuf {
    gate.folder().join("servers/s.toml")
}

fn change(gate: &Gate, change: impl Fn(&str) -> String) {
    let file = server_file(gate);
    let text = std::fs::read_to_string(&file).unwrap();
    write(&file, &change(&text));
}

#[tokio::test]
async fn a_running_call_ends_by_the_policy_it_began_with() {
    let more = Latch::new();
    let script = {
        let more = more.clone();
        move |seen: &Seen| {
            let answer = sound::message(seen.modern(), &sound::text("old"));
            (seen.tool() == "get_fault").then(|| {
                vec![
                    sound::stream(),
                    sound::event(
                        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}",
                    ),
                    Step::Wait(more.clone()),
                    sound::event(&answer),
                    sound::end(),
                ]
            })
        }
    };
    let first = Tools::start(script).await;
    let second = Tools::start(|_| None).await;
    let policy =
        Policy::local("")
            .server("s", first.address, "", "")
            .server("t", second.address, "", "");
    let gate = Gate::start(&policy);
    let agents = Agent::both("s", &gate).await;
    let mut running = Vec::new();
    for agent in &agents {
        agent.good(&gate).await;
        let mut stream = gate.open(agent.call("9", "get_fault")).await;
        assert!(stream.event().await.is_some());
        running.push(stream);
    }
    let calls = first.of("tools/call").len();
    let grants = gate.folder().join("egress.toml");
    let text = std::fs::read_to_string(&grants).unwrap();
    let (_, second_only) = text.rsplit_once("[[private]]").unwrap();
    let both = second_only.replace("\"server:t\"", "\"server:s\", \"server:t\"");
    write(&grants, &format!("[[private]]{both}"));
    change(&gate, |text| {
        text.replace(&first.address.to_string(), &second.address.to_string())
    });
    let outcome = gate.handle.reload();
    assert_eq!(
        outcome,
        Outcome::Changed {
            generation: 2,
            kept: vec![]
        }
    );
    // Another place is another server: sessions with the one before are over.
    let reply = gate.send(agents[1].call("1", "get_weather")).await;
    assert_eq!(reply.status, 404);
    let agents = Agent::both("s", &gate).await;
    for agent in &agents {
        agent.good(&gate).await;
    }
    assert_eq!(first.of("tools/call").len(), calls);
    assert_eq!(second.of("tools/call").len(), 2);
    for mut stream in running {
        more.open();
        assert!(stream.event().await.unwrap().contains("old"));
        assert_eq!(stream.event().await, None);
    }
    Agent::modern("s").good(&gate).await;
    let records = gate.stop().await;
    let generations: Vec<_> = records
        .iter()
        .filter(|record| record["tool"] == "get_fault")
        .map(|record| record["generation"].clone())
        .collect();
    assert_eq!(generations, [1, 1]);
}

#[tokio::test]
async fn a_connection_of_an_older_policy_is_not_used_again() {
    let (tools, gate) = before(|_| None, "").await;
    for agent in Agent::both("s", &gate).await {
        agent.good(&gate).await;
        agent.good(&gate).await;
        let connections = tools.connections();
        change(&gate, |text| {
            format!(
                "title = \"{connections}\"\n{}",
                text.split_once('\n')
                    .map_or(text, |(first, rest)| if first.starts_with("title") {
                        rest
                    } else {
                        text
                    })
            )
        });
        assert!(matches!(gate.handle.reload(), Outcome::Changed { .. }));
        agent.good(&gate).await;
        assert_eq!(tools.connections(), connections + 1);
        agent.good(&gate).await;
        assert_eq!(tools.connections(), connections + 1);
    }
    stop(gate).await;
}

#[tokio::test]
async fn a_bad_file_changes_nothing_and_shows() {
    let (_tools, gate) = before(|_| None, "").await;
    let agent = Agent::modern("s");
    agent.good(&gate).await;
    assert_eq!(gate.metric("tollgate_policy_reload_ok"), 1);
    let sound = std::fs::read_to_string(server_file(&gate)).unwrap();
    write(&server_file(&gate), &format!("{sound}\nunknown = 1\n"));
    let Outcome::Rejected { faults } = gate.handle.reload() else {
        panic!("a bad file was taken");
    };
    assert!(
        faults[0].to_string().starts_with("servers/s.toml:"),
        "{faults:?}"
    );
    assert_eq!(gate.metric("tollgate_policy_reload_ok"), 0);
    agent.good(&gate).await;
    write(&server_file(&gate), &sound.replace("\"get_*\"", "\"none\""));
    assert_eq!(
        gate.handle.reload(),
        Outcome::Changed {
            generation: 2,
            kept: vec![]
        }
    );
    assert_eq!(gate.metric("tollgate_policy_reload_ok"), 1);
    let reply = gate.send(agent.call("1", "get_weather")).await;
    assert_eq!(agent.refusal(&reply), "approval.unavailable");
    write(&server_file(&gate), &sound);
    // Nobody says so: it is found.
    eventually("the change is found", || {
        gate.metric("tollgate_policy_generation") == 3
    })
    .await;
    agent.good(&gate).await;
    let records = gate.stop().await;
    let reloads: Vec<_> = records
        .iter()
        .filter(|record| record["kind"] == "policy")
        .map(|record| record["outcome"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(reloads, ["refused", "allowed", "allowed"]);
}

/// A stream may last for a day, and must not outlast what its caller may do.
#[tokio::test]
async fn a_listening_stream_ends_when_another_policy_holds() {
    let script = |seen: &Seen| {
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        (seen.method() == "GET").then(|| vec![sound::stream(), sound::event(changed), Step::Hang])
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    for round in 1..3 {
        let mut stream = agent.listen(&gate).await;
        assert!(stream.event().await.is_some());
        assert_eq!(gate.handle.reload(), Outcome::Unchanged { kept: vec![] });
        change(&gate, |text| {
            format!(
                "read_only = [\"get_*\", \"x{round}\"]\n{}",
                text.lines()
                    .filter(|line| !line.starts_with("read_only"))
                    .collect::<Vec<_>>()
                    .join("\n")
            )
        });
        assert!(matches!(gate.handle.reload(), Outcome::Changed { .. }));
        assert_eq!(stream.event().await, None);
        assert!(stream.complete);
    }
    assert_eq!(tools.of("GET").len(), 2);
    let ended = stop(gate).await;
    assert!(
        ended.iter().all(|end| end.ends_with(" allowed")),
        "{ended:?}"
    );
}

#[tokio::test]
async fn a_removed_server_is_unknown_and_a_removed_key_opens_nothing() {
    let tools = Tools::start(|_| None).await;
    let (ann, bob) = ("tg_ann_key_12345", "tg_bob_key_12345");
    let policy = Policy::keys(
        &[
            (ann, "agent = \"a\"\nuser = \"ann\""),
            (bob, "agent = \"b\"\nuser = \"bob\""),
        ],
        "",
    )
    .server("s", tools.address, "access = \"everyone\"", "")
    .server("t", tools.address, "access = \"everyone\"", "");
    let gate = Gate::start(&policy);
    let gone = Agent::modern("s").with_key(bob).legacy(&gate).await;
    gone.good(&gate).await;
    let keys = gate.folder().join("keys.toml");
    let text = std::fs::read_to_string(&keys).unwrap();
    write(&keys, text.rsplit_once("[[key]]").unwrap().0);
    std::fs::remove_file(gate.folder().join("servers/t.toml")).unwrap();
    let grants = gate.folder().join("egress.toml");
    let text = std::fs::read_to_string(&grants).unwrap();
    write(&grants, text.rsplit_once("[[private]]").unwrap().0);
    assert_eq!(
        gate.handle.reload(),
        Outcome::Changed {
            generation: 2,
            kept: vec![]
        }
    );
    assert_eq!(gate.send(gone.call("1", "get_weather")).await.status, 401);
    let reply = gate
        .send(Agent::modern("t").with_key(ann).call("1", "get_weather"))
        .await;
    assert_eq!(reply.json()["error"]["code"], "policy.server_unknown");
    Agent::modern("s").with_key(ann).good(&gate).await;
    gate.stop().await;
}

/// Neither what a server says nor what its file says stops the others.
#[tokio::test]
async fn a_malformed_server_stops_no_other() {
    let nonsense = |seen: &Seen| {
        let list = sound::result(seen.modern(), r#"{"tools":7}"#);
        (seen.method() == "tools/list").then_some(list)
    };
    let bad = Tools::start(nonsense).await;
    let tools = Tools::start(|_| None).await;
    let policy =
        Policy::local("")
            .server("a", bad.address, "", "")
            .server("s", tools.address, "", "");
    let gate = Gate::start(&policy);
    let agents = Agent::both("s", &gate).await;
    let others = Agent::both("a", &gate).await;
    for agent in &others {
        let reply = gate.send(agent.call("1", "get_weather")).await;
        assert_eq!(agent.refusal(&reply), "upstream.malformed");
    }
    for agent in &agents {
        agent.good(&gate).await;
    }
    let file = gate.folder().join("servers/a.toml");
    let sound = std::fs::read_to_string(&file).unwrap();
    write(&file, "kind = 7\n");
    assert!(matches!(gate.handle.reload(), Outcome::Rejected { .. }));
    for agent in &agents {
        agent.good(&gate).await;
    }
    let moved = sound.replace(&bad.address.to_string(), &tools.address.to_string());
    assert_ne!(moved, sound);
    write(&file, &moved);
    let grants = gate.folder().join("egress.toml");
    let text = std::fs::read_to_string(&grants).unwrap();
    let (_, last) = text.rsplit_once("[[private]]").unwrap();
    let both = last.replace("\"server:s\"", "\"server:a\", \"server:s\"");
    write(&grants, &format!("[[private]]{both}"));
    assert!(matches!(gate.handle.reload(), Outcome::Changed { .. }));
    for agent in [Agent::modern("a")].iter().chain(&agents) {
        agent.good(&gate).await;
    }
    gate.stop().await;
}
