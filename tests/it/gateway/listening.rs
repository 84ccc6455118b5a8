//! The stream of what a server says unasked: as long as the session, however much or little is said.

use super::{Agent, SHORT, before, stop};
use crate::support::{
    sound as say,
    tools::{Latch, Seen, Step},
};

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// The limits of a call, which a stream outlasts.
fn limits() -> String {
    format!("{SHORT}response_bytes = 65536\n")
}

fn listening(steps: Vec<Step>) -> impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static {
    move |seen: &Seen| (seen.method() == "GET").then(|| steps.clone())
}

#[tokio::test]
async fn neither_silence_nor_length_ends_it() {
    let (more, silent) = (Latch::new(), Latch::new());
    let event = format!("data: {CHANGED}\n\n");
    let steps = vec![
        say::stream(),
        say::event(CHANGED),
        Step::Wait(more.clone()),
        say::chunk(&event.repeat(2_000)),
        Step::Tell(silent.clone()),
        Step::Hang,
    ];
    let (tools, gate) = before(listening(steps), &limits()).await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let mut stream = agent.listen(&gate).await;
    assert_eq!(stream.event().await.as_deref(), Some(CHANGED));
    // A call that hangs is given up after the same silence; by then the stream has been silent for as long.
    let hanging = gate.send(agent.request("1", "tools/call", r#""name":"get_fault""#));
    drop(hanging.await);
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    more.open();
    for _ in 0..2_000 {
        assert_eq!(stream.event().await.as_deref(), Some(CHANGED));
    }
    silent.wait().await;
    assert_eq!(gate.send(agent.bare("DELETE")).await.status, 200);
    assert_eq!(stream.event().await, None);
    assert!(stream.complete);
    assert_eq!(tools.of("GET").len(), 1);
    let ended = stop(gate).await;
    assert!(
        ended.iter().all(|end| end.ends_with(" allowed")),
        "{ended:?}"
    );
}

#[tokio::test]
async fn an_event_without_end_ends_it() {
    let piece = format!("data: {}\n", "x".repeat(10_000));
    let more = Latch::new();
    let mut steps = vec![say::stream(), say::event(CHANGED), Step::Wait(more.clone())];
    steps.extend((0..20).map(|_| say::chunk(&piece)));
    steps.push(Step::Hang);
    let (_tools, gate) = before(listening(steps), &limits()).await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let mut stream = agent.listen(&gate).await;
    assert_eq!(stream.event().await.as_deref(), Some(CHANGED));
    more.open();
    assert_eq!(stream.event().await, None);
    agent.good(&gate).await;
    let ended = stop(gate).await;
    assert!(
        ended.contains(&"request failed upstream.event_too_large".to_owned()),
        "{ended:?}"
    );
}

/// Nobody asked, so there is nothing to answer.
#[tokio::test]
async fn an_answer_on_it_ends_it() {
    let steps = say::events(&[CHANGED, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, CHANGED]);
    let (_tools, gate) = before(listening(steps), "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let mut stream = agent.listen(&gate).await;
    while stream.event().await.is_some() {}
    agent.good(&gate).await;
    let ended = stop(gate).await;
    assert!(
        ended.contains(&"request failed upstream.wrong_id".to_owned()),
        "{ended:?}"
    );
}

/// Everything that a server may say unasked, byte for byte; the rest goes nowhere.
#[tokio::test]
async fn every_notice_reaches_the_client() {
    const TOLD: [&str; 6] = [
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed","x":1.0}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://a"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":[ 1 ]}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e"}}"#,
    ];
    const KEPT: [&str; 3] = [
        r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
    ];
    let steps = say::events(&[&KEPT[..], &TOLD[..]].concat());
    let (_tools, gate) = before(listening(steps), "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let mut stream = agent.listen(&gate).await;
    for told in TOLD {
        let event = stream.whole_event().await;
        assert_eq!(event, Some(format!("event: message\ndata: {told}")));
    }
    assert_eq!(stream.event().await, None);
    stop(gate).await;
}
