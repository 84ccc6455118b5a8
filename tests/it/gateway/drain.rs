//! The end of the process, while calls run.

use super::{Agent, before, ends};
use crate::support::{
    gate::eventually,
    sound,
    tools::{Latch, Seen, Step},
};

const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;

fn holding(more: &Latch) -> impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static {
    let more = more.clone();
    move |seen: &Seen| {
        let answer = sound::message(seen.modern(), &sound::text("done"));
        let held = [
            sound::stream(),
            sound::event(PROGRESS),
            Step::Wait(more.clone()),
            sound::event(&answer),
            sound::end(),
        ];
        let streams = ["GET", "subscriptions/listen"].contains(&seen.method());
        (seen.tool() == "send_mail" || streams).then(|| held.to_vec())
    }
}

#[tokio::test]
async fn a_drain_lets_calls_finish_and_ends_listening_streams() {
    let more = Latch::new();
    let (_tools, gate) = before(holding(&more), "").await;
    let [modern, legacy] = Agent::both("s", &gate).await;
    let mut calls = Vec::new();
    for agent in [&modern, &legacy] {
        let mut call = gate.open(agent.call("1", "send_mail")).await;
        assert_eq!(call.event().await.as_deref(), Some(PROGRESS));
        calls.push(call);
    }
    let mut stream = legacy.listen(&gate).await;
    assert_eq!(stream.event().await.as_deref(), Some(PROGRESS));
    let mut subscribed = gate
        .open(modern.request("\"l\"", "subscriptions/listen", "\"notifications\":{}"))
        .await;
    gate.handle.drain();
    assert_eq!(stream.event().await, None);
    assert!(stream.complete);
    let last = r#"{"jsonrpc":"2.0","id":"l","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}"#;
    assert_eq!(subscribed.event().await.as_deref(), Some(last));
    assert_eq!(subscribed.event().await, None);
    assert!(subscribed.complete);
    for mut call in calls {
        more.open();
        assert!(call.event().await.unwrap().contains("done"));
        assert_eq!(call.event().await, None);
        assert!(call.complete);
    }
    let ended = ends(&gate.stop().await);
    assert_eq!(
        ended.iter().filter(|end| *end == "call intent").count(),
        2,
        "{ended:?}"
    );
    assert_eq!(
        ended.iter().filter(|end| *end == "call allowed").count(),
        2,
        "{ended:?}"
    );
}

/// What is not waited for has a record of its own.
#[tokio::test]
async fn a_call_that_is_cut_off_leaves_its_outcome() {
    let more = Latch::new();
    let (tools, gate) = before(holding(&more), "").await;
    let mut call = gate.open(Agent::modern("s").call("1", "send_mail")).await;
    assert_eq!(call.event().await.as_deref(), Some(PROGRESS));
    gate.handle.cut();
    assert_eq!(call.event().await, None);
    assert!(!call.complete);
    let ended = ends(&gate.stop().await);
    assert_eq!(ended, ["call intent", "call failed listen.client_gone"]);
    more.open();
    eventually("the server's connections end", || tools.open() == 0).await;
}
