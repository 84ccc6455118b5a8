//! How many calls of all callers go to a server at once.

use super::{Agent, Signals, arrived, begin, finish, numbered, queue, refused, said};
use crate::support::{
    client::Ask,
    gate::{Gate, Policy, ends, eventually},
    sound as say,
    tools::Tools,
};

const RUNNING: &str = "tollgate_gateway_server_running";
const WAITING: &str = "tollgate_gateway_server_waiting";

/// A call of an agent in a conversation of its own.
fn call(agent: &Agent, number: usize) -> Ask {
    let call = numbered(agent, "send_mail", number);
    call.with("Tollgate-Conversation", &number.to_string())
}

async fn two_agents(signals: &Signals, tables: &str) -> (Tools, Gate, [Agent; 2]) {
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
    let policy = Policy::keys(&keys, "").server("s", tools.address, "", tables);
    // Two workers: what they share is shared.
    let gate = Gate::start_with(&policy, 2, "");
    let agents = ["tg_one", "tg_two"].map(|key| Agent::modern("s").with_key(key));
    (tools, gate, agents)
}

#[tokio::test]
async fn a_server_takes_so_many_calls_and_callers_take_turns() {
    let signals = Signals::new();
    let (tools, gate, [one, two]) = two_agents(&signals, "[limits]\nconcurrency = 1\n").await;
    let mut calls = vec![begin(&gate, call(&one, 0)).await];
    signals.came.wait().await;
    for (agent, number) in [(&one, 1), (&one, 2), (&one, 3), (&two, 4)] {
        calls.push(queue(&gate, WAITING, call(agent, number)).await);
    }
    assert_eq!((gate.metric(RUNNING), gate.metric(WAITING)), (1, 4));
    let intents = |gate: &Gate| {
        let ended = ends(&gate.records());
        ended.iter().filter(|end| *end == "call intent").count()
    };
    assert_eq!(intents(&gate), 1, "nothing that waits has an intent");
    let reply = gate.send(call(&two, 5)).await;
    let text = refused(&two, &reply, "gateway.server_busy");
    assert!(
        text.contains("1 requests to server `s` run and 4 wait"),
        "{text}"
    );
    // Lists are no work, and wait for nobody.
    let reply = gate.send(two.request("6", "tools/list", "")).await;
    assert!(reply.json()["result"]["tools"].is_array());
    for _ in 1..5 {
        signals.more.open();
        signals.came.wait().await;
    }
    signals.more.open();
    for call in calls {
        assert_eq!(said(&finish(call).await), "done");
    }
    assert_eq!(arrived(&tools), [0, 1, 4, 2, 3]);
    eventually("its seats are free", || gate.metric(RUNNING) == 0).await;
    assert_eq!(intents(&gate), 5);
    let ended = ends(&gate.stop().await);
    let busy = ended
        .iter()
        .filter(|end| *end == "call refused gateway.server_busy");
    assert_eq!(busy.count(), 1);
}

/// Streams that listen are no calls.
#[tokio::test]
async fn listening_takes_no_seat() {
    let tools = Tools::start(|seen| {
        (seen.method() == "GET").then(|| {
            let event =
                say::event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
            vec![say::stream(), event, crate::support::tools::Step::Hang]
        })
    })
    .await;
    let limits = "[limits]\nconcurrency = 1\n";
    let gate = Gate::start(&Policy::local("").server("s", tools.address, "", limits));
    let agent = Agent::modern("s").legacy(&gate).await;
    let mut stream = agent.listen(&gate).await;
    assert!(stream.event().await.is_some());
    agent.good(&gate).await;
    drop(stream);
    gate.stop().await;
}
