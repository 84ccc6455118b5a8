//! What all calls hold together.

use super::{Agent, before};
use crate::support::{
    client::Exchange,
    gate::{Gate, ends, eventually},
    sound as say,
    tools::Seen,
};

/// More than the sockets between two parties hold.
const LARGE: usize = 16_000_000;
/// So many of them fit into 256 MiB.
const FIT: usize = 16;

fn large(form: &str) -> String {
    format!(r#""name":"get_fault","arguments":{{"as":"{form}"}}"#)
}

fn calls(gate: &Gate, end: &str) -> usize {
    let ends = ends(&gate.records());
    ends.iter().filter(|found| *found == end).count()
}

/// Answers that their callers do not read are bounded together, in either form; small calls go on beside them.
#[tokio::test]
async fn answers_that_nobody_reads_leave_no_room_for_more() {
    let answer = say::message(true, &say::text(&"y".repeat(LARGE)));
    let script = move |seen: &Seen| match &seen.json["params"]["arguments"]["as"] {
        form if form == "json" => Some(say::json(&answer)),
        form if form == "events" => Some(say::events(&[&answer])),
        _ => None,
    };
    let (_tools, gate) = before(script, "[limits]\nresponse_bytes = 16777216\n").await;
    let agent = Agent::modern("s");
    agent.good(&gate).await;
    let mut unread = Vec::new();
    for number in 0..FIT {
        let form = ["json", "events"][number % 2];
        let ask = agent.request("1", "tools/call", &large(form));
        let bytes = ask.bytes(&gate.address.to_string());
        unread.push(Exchange::unanswered(gate.connect().await, &bytes).await);
    }
    eventually("all answers have come", || {
        calls(&gate, "call allowed") == FIT + 1
    })
    .await;
    for form in ["json", "events"] {
        let reply = gate
            .send(agent.request("1", "tools/call", &large(form)))
            .await;
        assert_eq!(agent.refusal(&reply), "egress.overloaded");
    }
    agent.good(&gate).await;
    drop(unread);
    eventually("their connections end", || {
        gate.metric("tollgate_listen_connections") == 0
    })
    .await;
    for form in ["json", "events"] {
        let reply = gate
            .send(agent.request("1", "tools/call", &large(form)))
            .await;
        assert!(reply.body.len() > LARGE, "{}", reply.body);
    }
    assert_eq!(calls(&gate, "call failed egress.overloaded"), 2);
    gate.stop().await;
}
