//! How many calls of a conversation run at once, how many wait, and what becomes of those.

mod servers;
mod ways;

use serde_json::Value;

use super::{Agent, before};
use crate::support::{
    client::{Ask, Exchange, Reply},
    gate::{Gate, Policy, ends, eventually, write},
    sound as say,
    tools::{Latch, Seen, Step, Tools},
};

/// What the test and the server tell one another.
struct Signals {
    came: Latch,
    more: Latch,
}

impl Signals {
    fn new() -> Self {
        let (came, more) = (Latch::new(), Latch::new());
        Self { came, more }
    }

    /// A server whose `get_fault` and `send_mail` end when the test says so, as a stream where the call asks for one.
    fn held(&self) -> impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static {
        let (came, more) = (self.came.clone(), self.more.clone());
        move |seen: &Seen| {
            ["get_fault", "send_mail"].contains(&seen.tool()).then(|| {
                let answer = say::message(seen.modern(), &say::text("done"));
                let wait = [Step::Tell(came.clone()), Step::Wait(more.clone())];
                if seen.json["params"]["arguments"]["as"] == "events" {
                    let mut steps = vec![say::stream()];
                    steps.extend(wait);
                    steps.extend([say::event(&answer), say::end()]);
                    steps
                } else {
                    [wait.to_vec(), say::json(&answer)].concat()
                }
            })
        }
    }
}

/// The call with this number, which its arguments say; the answer of every other one is a stream.
fn numbered(agent: &Agent, tool: &str, number: usize) -> Ask {
    let form = ["json", "events"][number % 2];
    let params = format!(r#""name":"{tool}","arguments":{{"n":{number},"as":"{form}"}}"#);
    agent.request(&number.to_string(), "tools/call", &params)
}

/// Sends a request whose answer is read later.
async fn begin(gate: &Gate, ask: Ask) -> Exchange {
    let bytes = ask.bytes(&gate.address.to_string());
    Exchange::unanswered(gate.connect().await, &bytes).await
}

async fn finish(call: Exchange) -> Reply {
    call.answered().await.whole().await
}

/// Sends a call that has to wait, and returns once it does.
async fn queue(gate: &Gate, gauge: &str, ask: Ask) -> Exchange {
    let before = gate.metric(gauge);
    let call = begin(gate, ask).await;
    eventually("the call waits", || gate.metric(gauge) == before + 1).await;
    call
}

const RUNNING: &str = "tollgate_gateway_calls_running";
const WAITING: &str = "tollgate_gateway_calls_waiting";

/// Which calls the server has seen, in order.
fn arrived(tools: &Tools) -> Vec<u64> {
    let calls = tools.of("tools/call");
    calls
        .iter()
        .filter_map(|seen| seen.json["params"]["arguments"]["n"].as_u64())
        .collect()
}

fn said(reply: &Reply) -> Value {
    reply.json()["result"]["content"][0]["text"].clone()
}

/// The text of a refusal.
fn refused(agent: &Agent, reply: &Reply, code: &str) -> String {
    assert_eq!(agent.refusal(reply), code);
    let text = said(reply).as_str().unwrap().to_owned();
    assert!(text.contains("refused"), "{text}");
    text
}

#[tokio::test]
async fn four_run_four_wait_in_order_and_the_rest_is_refused() {
    let signals = Signals::new();
    let (tools, gate) = before(signals.held(), "").await;
    for (at, agent) in Agent::both("s", &gate).await.into_iter().enumerate() {
        let first = at * 100;
        let mut calls = Vec::new();
        for number in first..first + 4 {
            calls.push(begin(&gate, numbered(&agent, "get_fault", number)).await);
            signals.came.wait().await;
        }
        for number in first + 4..first + 8 {
            let ask = numbered(&agent, "get_fault", number);
            calls.push(queue(&gate, WAITING, ask).await);
        }
        let reply = gate.send(agent.call("9", "get_weather")).await;
        assert_eq!(
            refused(&agent, &reply, "gateway.calls_limit"),
            "gateway.calls_limit: refused: 4 calls of this conversation run and 4 wait, which is all that may; \
             wait for the calls that run before making more"
        );
        assert_eq!((gate.metric(RUNNING), gate.metric(WAITING)), (4, 4));
        // Another conversation of the same caller is not concerned.
        let apart = gate.send(agent.call_apart("10", "get_weather")).await;
        assert_eq!(said(&apart), "ok get_weather");
        for waiting in (0..4).rev() {
            signals.more.open();
            signals.came.wait().await;
            eventually("the next runs", || gate.metric(WAITING) == waiting).await;
        }
        (0..4).for_each(|_| signals.more.open());
        for call in calls {
            assert_eq!(said(&finish(call).await), "done");
        }
        let order: Vec<u64> = arrived(&tools).into_iter().skip(at * 8).collect();
        let first = first as u64;
        assert_eq!(order[4..], (first + 4..first + 8).collect::<Vec<_>>());
    }
    eventually("all seats are free", || gate.metric(RUNNING) == 0).await;
    let ended = ends(&gate.stop().await);
    let refused = ended
        .iter()
        .filter(|end| *end == "call refused gateway.calls_limit");
    assert_eq!(refused.count(), 2);
}

/// One agent's calls never count against another's, nor one user's against another's.
#[tokio::test]
async fn every_caller_has_lanes_of_its_own() {
    let signals = Signals::new();
    let tools = Tools::start(signals.held()).await;
    let keys = [
        (
            "tg_one",
            "agent = \"one\"\ntenant = \"default\"\nuser = \"ann\"",
        ),
        (
            "tg_two",
            "agent = \"two\"\ntenant = \"default\"\nuser = \"ann\"",
        ),
    ];
    let policy = Policy::keys(&keys, "[limits]\nrunning = 1\nwaiting = 0\n");
    let gate = Gate::start(&policy.server("s", tools.address, "", ""));
    let [one, two] = ["tg_one", "tg_two"].map(|key| Agent::modern("s").with_key(key));
    let call = begin(&gate, numbered(&one, "get_fault", 0)).await;
    signals.came.wait().await;
    let reply = gate.send(one.call("1", "get_weather")).await;
    refused(&one, &reply, "gateway.calls_limit");
    two.good(&gate).await;
    // A session that names no conversation is one.
    one.clone().legacy(&gate).await.good(&gate).await;
    signals.more.open();
    assert_eq!(said(&finish(call).await), "done");
    one.good(&gate).await;
    gate.stop().await;
}

#[tokio::test]
async fn one_at_a_time_is_a_setting_and_a_reload_changes_it() {
    let signals = Signals::new();
    let tools = Tools::start(signals.held()).await;
    let policy = Policy::local("[limits]\nrunning = 1\nwaiting = 3\n");
    let gate = Gate::start(&policy.server("s", tools.address, "", ""));
    let agent = Agent::modern("s");
    let mut calls = vec![begin(&gate, numbered(&agent, "send_mail", 0)).await];
    signals.came.wait().await;
    for number in 1..4 {
        calls.push(queue(&gate, WAITING, numbered(&agent, "send_mail", number)).await);
    }
    let ended = ends(&gate.records());
    let intents = ended.iter().filter(|end| *end == "call intent");
    assert_eq!(intents.count(), 1, "{ended:?}");
    signals.more.open();
    signals.came.wait().await;
    assert_eq!(arrived(&tools), [0, 1]);
    let file = gate.folder().join("tollgate.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    write(&file, &text.replace("running = 1", "running = 4"));
    gate.handle.reload();
    // The call that comes has those run that waited.
    calls.push(begin(&gate, numbered(&agent, "send_mail", 4)).await);
    for _ in 2..5 {
        signals.came.wait().await;
    }
    (0..4).for_each(|_| signals.more.open());
    for call in calls {
        assert_eq!(said(&finish(call).await), "done");
    }
    gate.stop().await;
}

/// Whoever waits no more, for whatever reason, is not sent and leaves its place to the next.
#[tokio::test]
async fn a_call_that_stops_waiting_is_not_sent() {
    let signals = Signals::new();
    let tools = Tools::start(signals.held()).await;
    let policy = Policy::local("[limits]\nrunning = 1\nwaiting = 4\n");
    let gate = Gate::start(&policy.server("s", tools.address, "", ""));
    let agent = Agent::modern("s").legacy(&gate).await;
    let running = begin(&gate, numbered(&agent, "send_mail", 0)).await;
    signals.came.wait().await;
    let cancelled = queue(&gate, WAITING, numbered(&agent, "send_mail", 1)).await;
    let left = queue(&gate, WAITING, numbered(&agent, "send_mail", 2)).await;
    let last = queue(&gate, WAITING, numbered(&agent, "send_mail", 3)).await;
    drop(left);
    eventually("it has gone", || gate.metric(WAITING) == 2).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(gate.send(agent.post(cancel)).await.status, 202);
    assert_eq!(finish(cancelled).await.body, "");
    (0..2).for_each(|_| signals.more.open());
    assert_eq!(said(&finish(running).await), "done");
    assert_eq!(said(&finish(last).await), "done");
    assert_eq!(arrived(&tools), [0, 3]);
    let ended = ends(&gate.stop().await);
    let count = |end: &str| ended.iter().filter(|found| *found == end).count();
    assert_eq!(count("call intent"), 2, "{ended:?}");
    assert_eq!(count("call failed gateway.cancelled"), 1);
    assert_eq!(count("call failed listen.client_gone"), 1);
}

/// The conversation is the same on all servers, and each call has its own server's time.
#[tokio::test]
async fn waiting_counts_against_the_calls_own_time() {
    let signals = Signals::new();
    let slow = Tools::start(signals.held()).await;
    let quick = Tools::start(|_| None).await;
    let policy = Policy::local("[limits]\nrunning = 1\n")
        .server("slow", slow.address, "", "")
        .server("s", quick.address, "", "[limits]\ntimeout = \"1s\"\n");
    let gate = Gate::start(&policy);
    let running = begin(&gate, numbered(&Agent::modern("slow"), "get_fault", 0)).await;
    signals.came.wait().await;
    let agent = Agent::modern("s");
    let reply = gate.send(agent.call("1", "send_mail")).await;
    let text = refused(&agent, &reply, "gateway.calls_limit");
    assert!(text.contains("its time was over"), "{text}");
    assert_eq!(quick.seen().len(), 0);
    signals.more.open();
    assert_eq!(said(&finish(running).await), "done");
    agent.good(&gate).await;
    gate.stop().await;
}

#[tokio::test]
async fn a_drain_refuses_calls_that_wait_and_lets_others_finish() {
    let signals = Signals::new();
    let tools = Tools::start(signals.held()).await;
    let policy = Policy::local("[limits]\nrunning = 1\n");
    let gate = Gate::start(&policy.server("s", tools.address, "", ""));
    for (number, agent) in Agent::both("s", &gate).await.into_iter().enumerate() {
        let running = begin(&gate, numbered(&agent, "send_mail", number)).await;
        signals.came.wait().await;
        let waiting = queue(&gate, WAITING, numbered(&agent, "send_mail", 9)).await;
        if number == 1 {
            gate.handle.drain();
            let text = refused(&agent, &finish(waiting).await, "gateway.calls_limit");
            assert!(text.contains("shutting down"), "{text}");
            signals.more.open();
            assert_eq!(said(&finish(running).await), "done");
        } else {
            (0..2).for_each(|_| signals.more.open());
            assert_eq!(said(&finish(running).await), "done");
            assert_eq!(said(&finish(waiting).await), "done");
            signals.came.wait().await;
        }
    }
    gate.stop().await;
    assert_eq!(arrived(&tools), [0, 9, 1]);
}

const FORM: &str = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}"#;

/// A call that waits for its person, or for its client to come back, leaves its seat to others; all together there are
/// never more than may run and wait.
#[tokio::test]
async fn a_call_that_waits_for_its_person_stops_no_other() {
    let next = Latch::new();
    let script = {
        let next = next.clone();
        move |seen: &Seen| {
            let answer = say::message(false, &say::text("answered"));
            let said = match seen.json["params"]["arguments"]["as"].as_str()? {
                "question" => say::event(FORM),
                _ => say::chunk("id: 1\ndata:\n\n"),
            };
            let wait = Step::Wait(next.clone());
            Some(vec![
                say::stream(),
                said,
                wait,
                say::event(&answer),
                say::end(),
            ])
        }
    };
    let tools = Tools::start(script).await;
    let policy = Policy::local("[limits]\nrunning = 1\nwaiting = 1\n");
    let gate = Gate::start(&policy.server("s", tools.address, "", "[limits]\nconcurrency = 1\n"));
    let mut agent = Agent::modern("s");
    let welcome = gate
        .send(agent.hello("2025-11-25", r#"{"elicitation":{}}"#))
        .await;
    agent.session = welcome.header("mcp-session-id").map(str::to_owned);
    let ask = |id: &str, form: &str| {
        let params = format!(r#""name":"get_fault","arguments":{{"as":"{form}"}}"#);
        agent.request(id, "tools/call", &params)
    };
    agent.good(&gate).await;

    let mut asking = gate.open(ask("11", "question")).await;
    let question: Value = serde_json::from_str(&asking.event().await.unwrap()).unwrap();
    agent.good(&gate).await;
    // Two are all that there may be.
    let mut second = gate.open(ask("12", "question")).await;
    assert!(second.event().await.is_some());
    let reply = gate.send(agent.call("3", "get_weather")).await;
    refused(&agent, &reply, "gateway.calls_limit");
    drop(second);
    eventually("the other has gone", || gate.metric(RUNNING) == 1).await;
    let accept = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept"}}}}"#,
        question["id"]
    );
    assert_eq!(gate.send(agent.post(&accept)).await.status, 202);
    // It runs again, and others wait for it.
    let waiting = queue(&gate, WAITING, agent.call("4", "get_weather")).await;
    next.open();
    assert!(asking.event().await.unwrap().contains("answered"));
    assert_eq!(said(&finish(waiting).await), "ok get_weather");

    let mut lost = gate.open(ask("15", "event")).await;
    assert!(lost.whole_event().await.is_some());
    drop(lost);
    agent.good(&gate).await;
    gate.handle.cut();
    gate.stop().await;
}
