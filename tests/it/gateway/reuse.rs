//! Connections that end just as they are used again: a request is sent again only where nothing of it was.

use std::collections::HashMap;

use super::{Agent, before};
use crate::support::{
    gate::{ends, eventually},
    sound as say,
    tools::{Seen, Step},
};

/// A server that closes each connection as soon as it has answered: the next call meets the close before, in, or after the
/// moment in which it is sent. Whatever comes of it, no effect happens twice, and none that is reported as done did not.
#[tokio::test]
async fn a_close_at_the_moment_of_reuse_never_doubles_an_effect() {
    const CALLS: usize = 200;
    let script = |seen: &Seen| {
        (seen.tool() == "send_mail").then(|| {
            let answer = say::result(seen.modern(), &say::text("sent"));
            [answer, vec![Step::Close]].concat()
        })
    };
    let (tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        agent.good(&gate).await;
        let earlier = tools.of("tools/call").len();
        let mut done = Vec::new();
        for number in 0..CALLS {
            let params = format!(r#""name":"send_mail","arguments":{{"n":{number}}}"#);
            let reply = gate.send(agent.request("1", "tools/call", &params)).await;
            if reply.json()["result"]["content"][0]["text"] == "sent" {
                done.push(number as u64);
            } else {
                assert_eq!(agent.refusal(&reply), "egress.connection_lost");
            }
        }
        let mut effects = HashMap::<u64, usize>::new();
        for seen in &tools.of("tools/call")[earlier..] {
            let number = seen.json["params"]["arguments"]["n"].as_u64().unwrap();
            *effects.entry(number).or_default() += 1;
        }
        assert!(effects.values().all(|times| *times == 1), "{effects:?}");
        assert!(done.iter().all(|number| effects[number] == 1));
        assert!(done.len() > CALLS / 2, "{}", done.len());
    }
    gate.stop().await;
}

/// All kept connections have ended long since: the call goes over a new one, and nobody notices.
#[tokio::test]
async fn connections_that_ended_while_they_were_idle_are_passed_over() {
    let script = |seen: &Seen| {
        (seen.tool() == "get_fault").then(|| {
            let answer = say::result(seen.modern(), &say::text("closing"));
            [answer, vec![Step::Close]].concat()
        })
    };
    let (tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        agent.good(&gate).await;
        let (gate, agent) = (&gate, &agent);
        let many = (0..4)
            .map(|id| async move { gate.send(agent.call(&id.to_string(), "get_fault")).await });
        futures_util::future::join_all(many).await;
        eventually("all are closed", || tools.open() == 0).await;
        let sent = tools.of("tools/call").len();
        let reply = gate.send(agent.call("9", "send_mail")).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "ok send_mail");
        assert_eq!(tools.of("tools/call").len(), sent + 1);
    }
    let ended = ends(&gate.stop().await);
    assert!(
        ended.iter().all(|end| !end.contains("connection")),
        "{ended:?}"
    );
}

/// The server has read the request when it breaks the connection: whether it took effect is not known, and it is not sent
/// again, on a new connection as on one that was kept.
#[tokio::test]
async fn a_reset_after_the_request_was_read_is_final() {
    let script = |seen: &Seen| (seen.tool() == "send_mail").then(|| vec![Step::Reset]);
    let (tools, gate) = before(script, "").await;
    let mut sent = 0;
    for agent in Agent::both("s", &gate).await {
        agent.good(&gate).await;
        for _ in 0..3 {
            let reply = gate.send(agent.call("1", "send_mail")).await;
            assert_eq!(agent.refusal(&reply), "egress.connection_lost");
            sent += 1;
        }
    }
    let mails = tools.of("tools/call");
    let mails = mails.iter().filter(|seen| seen.tool() == "send_mail");
    assert_eq!(mails.count(), sent);
    let ended = ends(&gate.stop().await);
    let count = |end: &str| ended.iter().filter(|found| *found == end).count();
    assert_eq!(
        (
            count("call intent"),
            count("call failed egress.connection_lost")
        ),
        (sent, sent)
    );
}
