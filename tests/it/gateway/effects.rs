//! Calls that may change something: recorded before they are sent, recorded before they are answered, sent once.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock},
};

use super::{before, stop};
use crate::support::{
    agent::Agent,
    gate::{Gate, Policy, ends, eventually},
    sound,
    tools::{Latch, Seen, Step, Tools},
};

#[tokio::test]
async fn the_intent_is_on_disk_before_the_server_sees_a_byte() {
    let folder = Arc::new(OnceLock::<PathBuf>::new());
    let found = Arc::<Mutex<Vec<Vec<String>>>>::default();
    let script = {
        let (folder, found) = (folder.clone(), found.clone());
        move |seen: &Seen| {
            if seen.tool() == "send_mail" {
                let records = crate::audit::records(folder.get().unwrap());
                found.lock().unwrap().push(ends(&records));
            }
            None
        }
    };
    let (_tools, gate) = before(script, "").await;
    folder.set(gate.records_folder()).unwrap();
    for (at, agent) in Agent::both("s", &gate).await.iter().enumerate() {
        let reply = gate.send(agent.call("1", "send_mail")).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "ok send_mail");
        // Read at once, without a flush: what was answered is on disk.
        assert_eq!(
            ends(&gate.records()).last().map(String::as_str),
            Some("call allowed")
        );
        let found = found.lock().unwrap()[at].clone();
        assert_eq!(
            found.last().map(String::as_str),
            Some("call intent"),
            "{found:?}"
        );
    }
    Agent::modern("s").good(&gate).await;
    let records = gate.stop().await;
    let mails: Vec<_> = records
        .iter()
        .filter(|record| record["tool"] == "send_mail")
        .collect();
    assert_eq!(mails.len(), 4);
    for pair in mails.chunks(2) {
        assert_eq!(pair[0]["request_id"], pair[1]["request_id"]);
        assert_ne!(pair[0]["id"], pair[1]["id"]);
        assert_eq!(pair[1]["target"]["host"], "127.0.0.1");
        // An outcome's time is when it ended, not when the request came.
        let [began, ended] = [0, 1].map(|at| pair[at]["time"].as_str().unwrap());
        assert!(began < ended, "{began} {ended}");
    }
}

/// The last event of a stream is held back until the outcome is on disk.
#[tokio::test]
async fn a_streams_outcome_is_on_disk_before_its_end() {
    let script = |seen: &Seen| {
        let answer = sound::message(seen.modern(), &sound::text("sent"));
        (seen.tool() == "send_mail").then(|| sound::events(&[&answer]))
    };
    let (_tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        let mut reply = gate.open(agent.call("1", "send_mail")).await;
        assert!(reply.event().await.unwrap().contains("sent"));
        let ended = ends(&gate.records());
        assert_eq!(ended[ended.len() - 2..], ["call intent", "call allowed"]);
    }
    stop(gate).await;
}

/// On a connection that was used before, too, where a retry would be tempting.
#[tokio::test]
async fn nothing_is_sent_twice() {
    let script = |seen: &Seen| match seen.tool() {
        "send_mail" => Some(match &seen.json["params"]["arguments"]["how"] {
            how if how == "reset" => vec![Step::Reset],
            how if how == "close" => vec![Step::Close],
            _ => vec![
                Step::Say(b"HTTP/1.1 200 OK\r\nContent-".to_vec()),
                Step::Close,
            ],
        }),
        "get_fault" => {
            let answer = sound::result(seen.modern(), &sound::text("closing"));
            Some([answer, vec![Step::Close]].concat())
        }
        _ => None,
    };
    let (tools, gate) = before(script, "").await;
    let mut sent = 0;
    for agent in Agent::both("s", &gate).await {
        for how in ["reset", "close", "half"] {
            agent.good(&gate).await;
            let connections = tools.connections();
            let ask = agent.request(
                "1",
                "tools/call",
                &format!(r#""name":"send_mail","arguments":{{"how":"{how}"}}"#),
            );
            let reply = gate.send(ask).await;
            assert_eq!(agent.refusal(&reply), "egress.connection_lost");
            assert_eq!(
                tools.connections(),
                connections,
                "on the connection that stood"
            );
            sent += 1;
            // The server closes a connection that waits in the pool.
            let reply = gate.send(agent.call("2", "get_fault")).await;
            assert_eq!(
                reply.json()["result"]["content"][0]["text"],
                "closing",
                "{}",
                reply.body
            );
            eventually("the server closes", || tools.open() == 0).await;
        }
    }
    let mails = tools
        .of("tools/call")
        .iter()
        .filter(|seen| seen.tool() == "send_mail")
        .count();
    assert_eq!(mails, sent);
    let ended = stop(gate).await;
    let failed = ended
        .iter()
        .filter(|end| *end == "call failed egress.connection_lost")
        .count();
    let intents = ended.iter().filter(|end| *end == "call intent").count();
    assert_eq!((failed, intents), (sent, sent));
}

/// Takes the folder of the records away, and gives it back.
struct Away(PathBuf);

impl Away {
    fn take(gate: &Gate) -> Self {
        let folder = gate.records_folder();
        let aside = folder.with_extension("away");
        // At once: a record that is written meanwhile finds the whole folder, or none to make a file in.
        fs::rename(&folder, &aside).unwrap();
        fs::remove_dir_all(&aside).unwrap();
        Self(folder)
    }

    async fn give_back(self, gate: &Gate) {
        use std::os::unix::fs::PermissionsExt as _;
        fs::create_dir(&self.0).unwrap();
        fs::set_permissions(&self.0, fs::Permissions::from_mode(0o700)).unwrap();
        eventually("records are kept again", || {
            gate.handle.status().records.failure.is_none()
        })
        .await;
    }
}

#[tokio::test]
async fn without_records_nothing_runs() {
    let (tools, gate) = before(|_| None, "").await;
    let agents = Agent::both("s", &gate).await;
    for agent in &agents {
        agent.good(&gate).await;
        // Records of reads linger in memory. Behind this one's outcome, which was waited for, none does: else it would be
        // one of them that the writer fails at, and no intent would get as far.
        let reply = gate.send(agent.call("1", "send_mail")).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "ok send_mail");
    }
    let away = Away::take(&gate);
    // The first record that cannot be written says so.
    let reply = gate.send(agents[0].call("1", "send_mail")).await;
    assert_eq!(agents[0].refusal(&reply), "audit.unavailable");
    let reached = tools.seen().len();
    for agent in &agents {
        for tool in ["send_mail", "get_weather", "get_nothing"] {
            let reply = gate.send(agent.call("2", tool)).await;
            assert!(
                reply.body.contains("audit.unavailable: "),
                "{tool}: {}",
                reply.body
            );
        }
        let reply = gate.send(agent.request("3", "tools/list", "")).await;
        assert_eq!(reply.json()["error"]["data"]["code"], "audit.unavailable");
    }
    let reply = gate.send(Agent::modern("s").initialize("2025-11-25")).await;
    assert_eq!(reply.json()["error"]["data"]["code"], "audit.unavailable");
    assert_eq!(tools.seen().len(), reached, "nothing reached the server");
    assert_eq!(gate.metric("tollgate_audit_healthy"), 0);
    away.give_back(&gate).await;
    for agent in &agents {
        let reply = gate.send(agent.call("4", "send_mail")).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "ok send_mail");
    }
    let ended = stop(gate).await;
    // What was kept before went with the folder. The intent that was refused is kept: it was written when that was possible.
    assert_eq!(
        ended,
        [
            "call intent",
            "call intent",
            "call allowed",
            "call intent",
            "call allowed"
        ]
    );
}

#[tokio::test]
async fn reads_go_on_where_the_operator_says_so() {
    let tools = Tools::start(|_| None).await;
    let policy =
        Policy::local("[audit]\non_failure = \"reads\"").server("s", tools.address, "", "");
    let gate = Gate::start(&policy);
    let agents = Agent::both("s", &gate).await;
    agents[0].good(&gate).await;
    let away = Away::take(&gate);
    for agent in &agents {
        let reply = gate.send(agent.call("1", "send_mail")).await;
        assert_eq!(agent.refusal(&reply), "audit.unavailable");
        agent.good(&gate).await;
        let reply = gate.send(agent.request("3", "tools/list", "")).await;
        assert!(reply.json()["result"]["tools"].is_array());
    }
    assert!(
        tools
            .of("tools/call")
            .iter()
            .all(|seen| seen.tool() != "send_mail")
    );
    away.give_back(&gate).await;
    stop(gate).await;
}

/// The outcome cannot be written any more: the client must not take the answer for a recorded one.
#[tokio::test]
async fn an_outcome_that_cannot_be_recorded_is_said() {
    let (came, answer) = (Latch::new(), Latch::new());
    let script = {
        let (came, answer) = (came.clone(), answer.clone());
        move |seen: &Seen| {
            let said = match seen.json["params"]["arguments"]["as"] == "events" {
                true => sound::events(&[&sound::message(seen.modern(), &sound::text("sent"))]),
                false => sound::result(seen.modern(), &sound::text("sent")),
            };
            (seen.tool() == "send_mail").then(|| {
                [
                    vec![Step::Tell(came.clone()), Step::Wait(answer.clone())],
                    said,
                ]
                .concat()
            })
        }
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s");
    for (at, form) in ["json", "events"].into_iter().enumerate() {
        let params = format!(r#""name":"send_mail","arguments":{{"as":"{form}"}}"#);
        let mut taken = None;
        let failing = async {
            came.wait().await;
            taken = Some(Away::take(&gate));
            answer.open();
        };
        let call = gate.send(agent.request("1", "tools/call", &params));
        let (reply, ()) = tokio::join!(call, failing);
        assert_eq!(agent.refusal(&reply), "audit.unavailable");
        assert!(
            reply.body.contains("may have taken effect"),
            "{}",
            reply.body
        );
        assert!(!reply.body.contains("sent"));
        assert_eq!(tools.of("tools/call").len(), at + 1);
        taken.unwrap().give_back(&gate).await;
    }
    stop(gate).await;
}
