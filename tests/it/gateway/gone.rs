//! Clients that go away in the middle.

use tokio::runtime::Handle;

use super::{before, quiet, stop};
use crate::support::{
    agent::Agent,
    client::Exchange,
    gate::eventually,
    pipeline::Pipeline,
    sound,
    tools::{Latch, Seen, Step, Tools},
};

const ROUNDS: usize = 100;

fn holding(
    came: &Latch,
    gone: &Latch,
) -> impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static {
    let (came, gone) = (came.clone(), gone.clone());
    let event = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
    move |seen: &Seen| match seen.tool() {
        "get_fault" => Some(vec![
            sound::stream(),
            sound::event(event),
            Step::Closed(gone.clone()),
        ]),
        "send_mail" => Some(vec![Step::Tell(came.clone()), Step::Closed(gone.clone())]),
        _ => None,
    }
}

#[tokio::test]
async fn clients_that_leave_their_streams_leave_nothing_behind() {
    let (came, gone) = (Latch::new(), Latch::new());
    let (tools, gate) = before(holding(&came, &gone), "[limits]\nconcurrency = 100\n").await;
    for agent in Agent::both("s", &gate).await {
        for round in 0..ROUNDS {
            let mut stream = gate.open(agent.call(&round.to_string(), "get_fault")).await;
            assert!(stream.event().await.is_some());
            drop(stream);
            gone.wait().await;
        }
        // Every place among the requests in flight is free again: all of these ids at once.
        eventually("connections are closed", || {
            gate.metric("tollgate_listen_connections") == 0
        })
        .await;
        let gate = &gate;
        let agent = &agent;
        let again = (0..ROUNDS).map(|id| async move {
            gate.send(agent.call_apart(&id.to_string(), "get_weather"))
                .await
        });
        for reply in futures_util::future::join_all(again).await {
            assert_eq!(
                reply.json()["result"]["content"][0]["text"],
                "ok get_weather",
                "{}",
                reply.body
            );
        }
    }
    eventually("connections are closed", || {
        gate.metric("tollgate_listen_connections") == 0
    })
    .await;
    let held = tools
        .of("tools/call")
        .iter()
        .filter(|seen| seen.tool() == "get_fault")
        .count();
    assert_eq!(held, 2 * ROUNDS);
    let ended = stop(gate).await;
    let count = ended
        .iter()
        .filter(|end| *end == "call failed listen.client_gone")
        .count();
    assert_eq!(count, 2 * ROUNDS, "{ended:?}");
    eventually("the server's connections are closed", || tools.open() == 0).await;
}

/// Before any answer, in the middle of a side effect: intent and outcome are recorded.
#[tokio::test]
async fn clients_that_do_not_wait_for_an_answer_leave_a_record() {
    let (came, gone) = (Latch::new(), Latch::new());
    let (tools, gate) = before(holding(&came, &gone), "").await;
    let agents = Agent::both("s", &gate).await;
    for agent in &agents {
        for round in 0..10 {
            let bytes = agent
                .call(&round.to_string(), "send_mail")
                .bytes(&gate.address.to_string());
            let waiting = Exchange::unanswered(gate.connect().await, &bytes).await;
            came.wait().await;
            drop(waiting);
            gone.wait().await;
        }
        agent.good(&gate).await;
    }
    let ended = stop(gate).await;
    let count = |end: &str| ended.iter().filter(|found| *found == end).count();
    assert_eq!(
        (
            count("call intent"),
            count("call failed listen.client_gone")
        ),
        (20, 20),
        "{ended:?}"
    );
    eventually("the server's connections are closed", || tools.open() == 0).await;
}

/// Calls of both eras and listening streams, each left in the middle, a thousand in all.
#[tokio::test]
async fn a_thousand_streams_that_are_left_leave_no_task_behind() {
    let gone = Latch::new();
    let script = {
        let holding = holding(&Latch::new(), &gone);
        let gone = gone.clone();
        let event = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        move |seen: &Seen| match seen.method() {
            "GET" => Some(vec![
                sound::stream(),
                sound::event(event),
                Step::Closed(gone.clone()),
            ]),
            _ => holding(seen),
        }
    };
    let tools = Tools::start(script).await;
    let pipeline = Pipeline::new();
    let door = pipeline.listen(quiet::policy(&tools));
    let session = quiet::session(door).await;
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let mut few = 0;
    for round in 0..335 {
        for ask in [
            Agent::modern("demo").call("1", "get_fault"),
            session.call("1", "get_fault"),
            session.bare("GET"),
        ] {
            let mut stream = door.open(ask).await;
            assert!(stream.event().await.is_some());
            drop(stream);
            gone.wait().await;
        }
        if round == 4 {
            eventually("connections are closed", || tools.open() <= 1).await;
            few = tasks();
        }
    }
    eventually("tasks end", || tasks() <= few).await;
}

/// A server that closes its connection after each call of the one tool, and forgets every session before each of the other.
#[tokio::test]
async fn what_is_opened_anew_a_thousand_times_leaves_no_task_behind() {
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    let tools = Tools::start(|seen: &Seen| {
        let answer = sound::message(seen.modern(), &sound::text("once"));
        let mut steps = sound::json(&answer);
        steps[0] = Step::Say(HEAD.to_vec());
        steps.push(Step::Close);
        (seen.tool() == "get_fault").then_some(steps)
    })
    .await;
    let pipeline = Pipeline::new();
    let door = pipeline.listen(quiet::policy(&tools));
    let session = quiet::session(door).await;
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let mut few = 0;
    for round in 0..500 {
        tools.forget_sessions();
        for (ask, said) in [
            (Agent::modern("demo").call("1", "get_fault"), "once"),
            (session.call("1", "get_weather"), "ok get_weather"),
        ] {
            let reply = door.open(ask).await.whole().await;
            let result = &reply.json()["result"];
            assert_eq!(result["content"][0]["text"], said, "{}", reply.body);
        }
        if round == 4 {
            eventually("connections are closed", || tools.open() <= 1).await;
            few = tasks();
        }
    }
    assert_eq!(tools.of("initialize").len(), 501);
    assert!(tools.connections() >= 500);
    eventually("tasks end", || tasks() <= few).await;
}
