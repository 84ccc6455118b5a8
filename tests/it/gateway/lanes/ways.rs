//! Every way into a conversation is a way into its one lane.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{Agent, Signals, WAITING, begin, finish, numbered, queue, refused, said};
use crate::support::{
    client::Ask,
    gate::{Gate, Policy, eventually},
    sound as say,
    tools::{Latch, Seen, Step, Tools},
};

const NARROW: &str = "[limits]\nrunning = 1\nwaiting = 0\n";

fn named(ask: Ask) -> Ask {
    ask.with("Tollgate-Conversation", "c")
}

#[tokio::test]
async fn eras_sessions_and_spellings_share_the_lane_of_a_conversation() {
    let signals = Signals::new();
    let tools = Tools::start(signals.held()).await;
    let policy = Policy::local(NARROW).server("s", tools.address, "", "");
    let gate = Gate::start(&policy.server("t", tools.address, "", ""));
    let [modern, one] = Agent::both("s", &gate).await;
    let two = Agent::modern("s").legacy(&gate).await;
    let other = Agent::modern("t").legacy(&gate).await;
    let call = begin(&gate, named(numbered(&one, "get_fault", 0))).await;
    signals.came.wait().await;
    for agent in [&modern, &one, &two, &other] {
        let reply = gate.send(named(agent.call("1", "get_weather"))).await;
        refused(agent, &reply, "gateway.calls_limit");
        let meta = r#""name":"get_weather","arguments":{},"_meta":{"#;
        let twin = format!(r#"{meta}"io.tollgate/conversation":"c""#);
        let body = match agent.is_modern() {
            true => agent
                .message("2", "tools/call", r#""name":"get_weather","arguments":{}"#)
                .replace(
                    r#""_meta":{"#,
                    r#""_meta":{"io.tollgate/conversation":"c","#,
                ),
            false => agent.message("2", "tools/call", &format!("{twin}}}")),
        };
        let reply = gate.send(agent.post(&body)).await;
        refused(agent, &reply, "gateway.calls_limit");
    }
    signals.more.open();
    assert_eq!(said(&finish(call).await), "done");
    gate.stop().await;
}

/// Many calls in one message would be one call; there is no such message.
#[tokio::test]
async fn batches_run_nothing() {
    let signals = Signals::new();
    let tools = Tools::start(signals.held()).await;
    let gate = Gate::start(&Policy::local(NARROW).server("s", tools.address, "", ""));
    for agent in Agent::both("s", &gate).await {
        let calls: Vec<String> = (0..3)
            .map(|id| {
                let params = r#""name":"get_fault","arguments":{}"#;
                agent.message(&id.to_string(), "tools/call", params)
            })
            .collect();
        let batch = agent.post(&format!("[{}]", calls.join(",")));
        let reply = gate.send(batch.with("Mcp-Method", "tools/call")).await;
        assert_eq!(reply.status, 400, "{}", reply.body);
    }
    assert!(tools.of("tools/call").is_empty());
    gate.stop().await;
}

/// A call that its client takes up on another stream is the same call, on the seat that it has.
#[tokio::test]
async fn a_call_that_is_taken_up_again_keeps_its_seat() {
    let (call, came, more) = (Arc::new(AtomicU64::default()), Latch::new(), Latch::new());
    let script = {
        let (came, more) = (came.clone(), more.clone());
        move |seen: &Seen| {
            let answer = say::message(false, &say::text("done"));
            if seen.tool() == "get_fault" {
                call.store(seen.json["id"].as_u64().unwrap(), Ordering::SeqCst);
                let prime = say::chunk("id: s-0\nretry: 100\ndata: \n\n");
                return Some(vec![say::stream(), prime, Step::Hang]);
            }
            seen.header("last-event-id")?;
            let answer = answer.replace("$ID", &call.load(Ordering::SeqCst).to_string());
            let wait = [Step::Tell(came.clone()), Step::Wait(more.clone())];
            let steps = [vec![say::stream()], wait.to_vec()].concat();
            Some([steps, vec![say::event(&answer), say::end()]].concat())
        }
    };
    let tools = Tools::start(script).await;
    let policy = Policy::local("[limits]\nrunning = 1\nwaiting = 1\n");
    let gate = Gate::start(&policy.server("s", tools.address, "", ""));
    let agent = Agent::modern("s").legacy(&gate).await;
    let mut stream = gate.open(agent.call("1", "get_fault")).await;
    let prime = stream.whole_event().await.unwrap();
    let place = prime.lines().find_map(|line| line.strip_prefix("id: "));
    let back = agent.bare("GET").with("Last-Event-ID", place.unwrap());
    let mut taken = gate.open(back).await;
    came.wait().await;
    let waiting = queue(&gate, WAITING, agent.call("2", "get_weather")).await;
    let reply = gate.send(agent.call("3", "get_weather")).await;
    refused(&agent, &reply, "gateway.calls_limit");
    more.open();
    assert!(taken.event().await.unwrap().contains("done"));
    assert_eq!(said(&finish(waiting).await), "ok get_weather");
    eventually("all seats are free", || gate.metric(super::RUNNING) == 0).await;
    gate.stop().await;
}
