//! Streams: event by event, in both eras.

use super::{before, stop};
use crate::support::{
    agent::Agent,
    sound,
    tools::{Latch, Seen, Step},
};

const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1,"x":1.0}}"#;

fn streaming(seen: &Seen, next: &Latch) -> Option<Vec<Step>> {
    let answer = sound::message(seen.modern(), &sound::text("done"));
    (seen.tool() == "get_fault").then(|| {
        vec![
            sound::stream(),
            sound::event(PROGRESS),
            Step::Wait(next.clone()),
            sound::event(r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t"}}"#),
            sound::event(&PROGRESS.replace(":1,", ":2,")),
            Step::Wait(next.clone()),
            sound::event(&answer),
            sound::end(),
        ]
    })
}

#[tokio::test]
async fn each_event_arrives_before_the_server_says_the_next() {
    let next = Latch::new();
    let script = {
        let next = next.clone();
        move |seen: &Seen| streaming(seen, &next)
    };
    let (_tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        let mut reply = gate.open(agent.call("\"a\"", "get_fault")).await;
        assert_eq!(reply.status(), 200);
        assert_eq!(reply.header("content-type"), Some("text/event-stream"));
        assert_eq!(reply.header("x-accel-buffering"), Some("no"));
        assert_eq!(reply.event().await.as_deref(), Some(PROGRESS));
        next.open();
        assert_eq!(
            reply.event().await.as_deref(),
            Some(&*PROGRESS.replace(":1,", ":2,"))
        );
        next.open();
        let kind = if agent.is_modern() {
            r#""resultType":"complete","#
        } else {
            ""
        };
        assert_eq!(
            reply.event().await.unwrap(),
            format!(
                r#"{{"jsonrpc":"2.0","id":"a","result":{{{kind}"content":[{{"type":"text","text":"done"}}],"_meta":{{"io.tollgate/untrusted":{{"server":"s"}}}}}}}}"#
            )
        );
        assert_eq!(reply.event().await, None);
        assert!(reply.complete);
    }
    assert_eq!(
        stop(gate).await,
        [
            "request allowed",
            "request allowed",
            "call allowed",
            "call allowed"
        ]
    );
}

/// Not offered to any server, so refused in the client's name.
#[tokio::test]
async fn a_servers_requests_are_answered_by_the_gateway() {
    let script = |seen: &Seen| {
        let answer = sound::message(seen.modern(), &sound::text("done"));
        let asks =
            r#"{"jsonrpc":"2.0","id":"q\u0031","method":"sampling/createMessage","params":{}}"#;
        (seen.tool() == "get_fault")
            .then(|| sound::events(&[asks, r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#, &answer]))
    };
    let (tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        let mut reply = gate.open(agent.call("3", "get_fault")).await;
        assert!(reply.event().await.unwrap().contains("done"));
        assert_eq!(reply.event().await, None);
    }
    let answers = || {
        let mut texts: Vec<_> = tools.of("POST").into_iter().map(|seen| seen.text).collect();
        texts.sort();
        texts
    };
    crate::support::gate::eventually("both answers", || answers().len() == 2).await;
    assert_eq!(
        answers(),
        [
            r#"{"jsonrpc":"2.0","id":"q\u0031","error":{"code":-32601,"message":"mcp.method_unknown: this client does not offer that; use a method that the server's capabilities name","data":{"code":"mcp.method_unknown","remedy":"use a method that the server's capabilities name"}}}"#,
            r#"{"jsonrpc":"2.0","id":8,"result":{}}"#,
        ]
    );
    stop(gate).await;
}

/// Much more than any buffer on the way holds, and the answer still comes.
#[tokio::test]
async fn a_flood_of_notifications_before_the_answer_goes_through() {
    const EVENTS: usize = 20_000;
    let script = |seen: &Seen| {
        let flood = format!("data: {PROGRESS}\n\n").repeat(EVENTS / 100);
        let answer = sound::message(seen.modern(), &sound::text("done"));
        (seen.tool() == "get_fault").then(|| {
            let mut steps = vec![sound::stream()];
            steps.extend((0..100).map(|_| sound::chunk(&flood)));
            steps.extend([sound::event(&answer), sound::end()]);
            steps
        })
    };
    let (_tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        let reply = gate.send(agent.call("3", "get_fault")).await;
        assert_eq!(reply.body.matches("notifications/progress").count(), EVENTS);
        assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
    }
    stop(gate).await;
}
