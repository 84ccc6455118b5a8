//! What all calls hold together.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Agent, before};
use crate::support::{
    client::{Ask, Exchange, Reply},
    gate::{Gate, ends, eventually},
    sound as say,
    tools::{Latch, Seen, Step},
};

/// More than the sockets between two parties hold; sixteen fit into 256 MiB.
const LARGE: usize = 16_000_000;

/// The steps of `whole` up to its end, which does not come.
fn stalled(mut whole: Vec<Step>, come: &Latch) -> Vec<Step> {
    whole.pop();
    if let Some(Step::Chunk(text)) = whole.last_mut() {
        text.truncate(LARGE);
    }
    whole.extend([Step::Tell(come.clone()), Step::Hang]);
    whole
}

/// In a conversation of its own, where none waits for another.
fn ask(agent: &Agent, form: &str, stalls: bool) -> Ask {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let arguments = format!(r#"{{"as":"{form}","stalls":{stalls}}}"#);
    let params = format!(r#""name":"get_fault","arguments":{arguments}"#);
    let conversation = LAST.fetch_add(1, Ordering::Relaxed).to_string();
    let call = agent.request("1", "tools/call", &params);
    call.with("Tollgate-Conversation", &conversation)
}

async fn unread(gate: &Gate, ask: Ask) -> Exchange {
    let bytes = ask.bytes(&gate.address.to_string());
    Exchange::unanswered(gate.connect().await, &bytes).await
}

/// Asks for a large answer, which is cut, until there is no room to read it: Tollgate may still be reading what others
/// were sent.
async fn refused(gate: &Gate, agent: &Agent, form: &str) -> Reply {
    for _ in 0..10 {
        let reply = gate.send(ask(agent, form, false)).await;
        if reply.json()["result"]["isError"] == true {
            return reply;
        }
    }
    panic!("there is always room");
}

/// Answers that stop on their way are bounded together in either form; small calls go on beside them.
#[tokio::test]
async fn answers_that_nobody_takes_leave_no_room_for_more() {
    let come = Latch::new();
    let script = {
        let come = come.clone();
        let answer = say::message(true, &say::text(&"y".repeat(LARGE)));
        move |seen: &Seen| {
            let arguments = &seen.json["params"]["arguments"];
            let steps = match arguments["as"].as_str()? {
                "json" => say::json(&answer),
                _ => say::events(&[&answer]),
            };
            Some(match arguments["stalls"] == true {
                true => stalled(steps, &come),
                false => steps,
            })
        }
    };
    let (_tools, gate) = before(
        script,
        "[limits]\nresponse_bytes = 16777216\nconcurrency = 32\n",
    )
    .await;
    let agent = Agent::modern("s");
    agent.good(&gate).await;
    let mut held = Vec::new();
    for form in ["json", "events"].repeat(8) {
        held.push(unread(&gate, ask(&agent, form, true)).await);
        come.wait().await;
    }
    for form in ["json", "events"] {
        let reply = refused(&gate, &agent, form).await;
        assert_eq!(agent.refusal(&reply), "egress.overloaded");
    }
    agent.good(&gate).await;
    drop(held);
    eventually("their connections end", || {
        gate.metric("tollgate_listen_connections") == 0
    })
    .await;
    for form in ["json", "events"] {
        let reply = gate.send(ask(&agent, form, false)).await;
        let cut = &reply.json()["result"]["_meta"]["io.tollgate/cut"];
        assert!(cut["bytes"].as_u64() > Some(LARGE as u64), "{}", reply.body);
    }
    let ended = ends(&gate.stop().await);
    let overloaded = |end: &&String| *end == "call failed egress.overloaded";
    assert_eq!(ended.iter().filter(overloaded).count(), 2);
}
