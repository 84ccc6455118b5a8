//! Answers that come too late, or that nobody asked for.

use super::{Agent, SHORT, before, stop};
use crate::support::{
    gate::eventually,
    sound,
    tools::{Latch, Seen, Step},
};

#[tokio::test]
async fn an_answer_after_the_cancellation_reaches_nobody() {
    let (came, late) = (Latch::new(), Latch::new());
    let script = {
        let (came, late) = (came.clone(), late.clone());
        move |seen: &Seen| {
            let answer = sound::json(r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}"#);
            (seen.tool() == "get_fault").then(|| {
                [
                    vec![Step::Tell(came.clone()), Step::Wait(late.clone())],
                    answer,
                ]
                .concat()
            })
        }
    };
    let (_tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let cancel = async {
        came.wait().await;
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        assert_eq!(gate.send(agent.post(cancel)).await.status, 202);
    };
    let (reply, ()) = tokio::join!(gate.send(agent.call("1", "get_fault")), cancel);
    assert_eq!(reply.body, "");
    late.open();
    for _ in 0..5 {
        agent.good(&gate).await;
    }
    stop(gate).await;
}

/// The server of a session may still be at work: it is told, under the id that it knows.
#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_at_the_server() {
    let script = |seen: &Seen| match seen.tool() {
        "get_fault" => Some(vec![Step::Hang]),
        "send_mail" => Some(vec![sound::stream(), Step::Hang]),
        _ => None,
    };
    let (tools, gate) = before(script, SHORT).await;
    for agent in Agent::both("s", &gate).await {
        for (tool, code) in [
            ("get_fault", "egress.first_byte_timeout"),
            ("send_mail", "egress.idle_timeout"),
        ] {
            let reply = gate.send(agent.call("1", tool)).await;
            assert_eq!(agent.refusal(&reply), code);
        }
    }
    eventually("the server is told", || {
        tools.of("notifications/cancelled").len() == 2
    })
    .await;
    let told = tools.of("notifications/cancelled");
    let calls = tools.of("tools/call");
    for (told, call) in told.iter().zip(&calls[2..]) {
        assert_eq!(
            told.text,
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{},"reason":"timed out"}}}}"#,
                call.json["id"]
            )
        );
        assert_eq!(told.header("mcp-session-id"), Some("up-1"));
    }
    stop(gate).await;
}

/// A second response behind the first never answers another request.
#[tokio::test]
async fn a_response_that_nobody_asked_for_answers_nobody() {
    let script = |seen: &Seen| {
        let forged =
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"forged"}]}}"#;
        let both = [
            sound::result(seen.modern(), &sound::text("first")),
            sound::json(forged),
        ]
        .concat();
        (seen.tool() == "get_fault").then_some(both)
    };
    let (_tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        for _ in 0..20 {
            let reply = gate.send(agent.call("1", "get_fault")).await;
            assert_eq!(reply.json()["result"]["content"][0]["text"], "first");
            agent.good(&gate).await;
        }
    }
    stop(gate).await;
}

/// An error and a result for the same request: the first that comes is the answer, and the only one.
#[tokio::test]
async fn a_request_has_one_answer() {
    const ERROR: &str = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"first"}}"#;
    let answered = Latch::new();
    let script = {
        let answered = answered.clone();
        move |seen: &Seen| {
            let second = sound::message(seen.modern(), &sound::text("second"));
            (seen.tool() == "get_fault").then(|| {
                vec![
                    sound::stream(),
                    sound::event(ERROR),
                    Step::Wait(answered.clone()),
                    sound::event(&second),
                    sound::end(),
                ]
            })
        }
    };
    let (_tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        let mut reply = gate.open(agent.call("7", "get_fault")).await;
        assert_eq!(
            reply.event().await.as_deref(),
            Some(&*ERROR.replace("$ID", "7"))
        );
        assert_eq!(reply.event().await, None);
        assert!(reply.complete);
        answered.open();
        agent.good(&gate).await;
    }
    stop(gate).await;
}
