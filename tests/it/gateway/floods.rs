//! Servers and agents that say much at once.

use super::{Agent, before, stop};
use crate::support::{
    gate::eventually,
    sound as say,
    tools::{Latch, Seen, Step},
};

/// What is not answered in time is not answered at all, and takes nothing from anyone.
#[tokio::test]
async fn a_servers_requests_are_answered_a_few_at_a_time() {
    const PINGS: usize = 2_000;
    let script = |seen: &Seen| match seen.tool() {
        "get_fault" => {
            let pings: String = (0..PINGS)
                .map(|id| {
                    format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n\n")
                })
                .collect();
            let answer = say::message(seen.modern(), &say::text("done"));
            Some(vec![
                say::stream(),
                say::chunk(&pings),
                say::event(&answer),
                say::end(),
            ])
        }
        // An answer to a ping, never taken.
        _ if seen.method() == "POST" => Some(vec![Step::Hang]),
        _ => None,
    };
    let (tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        let reply = gate.send(agent.call("1", "get_fault")).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
        agent.good(&gate).await;
    }
    eventually("some answers", || tools.of("POST").len() == 8).await;
    assert!(tools.connections() < 16, "{}", tools.connections());
    gate.handle.cut();
    gate.stop().await;
}

#[tokio::test]
async fn large_arguments_and_results_go_through() {
    let script = |seen: &Seen| {
        let large = say::text(&"y".repeat(3 << 20));
        let answer = say::message(seen.modern(), &large);
        match &seen.json["params"]["arguments"]["as"] {
            form if form == "json" => Some(say::json(&answer)),
            form if form == "events" => Some(say::events(&[&answer])),
            _ => None,
        }
    };
    let (tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        for form in ["json", "events"] {
            let text = "x".repeat(1_000_000);
            let params =
                format!(r#""name":"get_fault","arguments":{{"as":"{form}","text":"{text}"}}"#);
            let reply = gate.send(agent.request("1", "tools/call", &params)).await;
            let said = &reply.json()["result"]["content"][0]["text"];
            // The server may send as much, and the caller gets what one result may be.
            assert!(said.as_str().unwrap().starts_with("yyyy"), "{said}");
            assert!(reply.body.len() <= 64 << 10, "{}", reply.body.len());
            let cut = &reply.json()["result"]["_meta"]["io.tollgate/cut"];
            assert!(cut["bytes"].as_u64() > Some(3 << 20), "{cut}");
            let seen = tools.of("tools/call").pop().unwrap();
            assert_eq!(seen.json["params"]["arguments"]["text"], text);
        }
    }
    stop(gate).await;
}

#[tokio::test]
async fn a_session_holds_so_many_calls_and_no_more() {
    const HELD: usize = 256;
    let more = Latch::new();
    let script = {
        let more = more.clone();
        move |seen: &Seen| {
            let answer = say::result(seen.modern(), &say::text("done"));
            (seen.tool() == "get_fault").then(|| [vec![Step::Wait(more.clone())], answer].concat())
        }
    };
    let (tools, gate) = before(script, "[limits]\nconcurrency = 1024\n").await;
    let agent = &Agent::modern("s").legacy(&gate).await;
    agent.good(&gate).await;
    let gate = &gate;
    let calls = (0..HELD).map(|id| async move {
        gate.send(agent.call_apart(&id.to_string(), "get_fault"))
            .await
    });
    let beyond = async {
        eventually("all calls run", || tools.of("tools/call").len() == HELD + 1).await;
        let reply = gate.send(agent.call("300", "get_weather")).await;
        assert_eq!(
            (reply.status, &reply.json()["error"]["data"]["code"]),
            (429, &"mcp.session_limit".into())
        );
        // Another session is not concerned.
        Agent::modern("s").good(gate).await;
        (0..HELD).for_each(|_| more.open());
    };
    let (replies, ()) = tokio::join!(futures_util::future::join_all(calls), beyond);
    for (id, reply) in replies.iter().enumerate() {
        assert_eq!(reply.json()["id"], id);
        assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
    }
    agent.good(gate).await;
}

/// More than all sockets on the way hold: the server waits for the client, and nothing is gathered in between.
#[tokio::test]
async fn a_server_is_not_read_faster_than_its_client_reads() {
    const EVENTS: usize = 96;
    let all = Latch::new();
    let script = {
        let all = all.clone();
        let pad = "x".repeat(1 << 20);
        let large = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","pad":"{pad}"}}"#
        );
        // Each is cut to what one message may be.
        move |seen: &Seen| {
            (seen.method() == "GET").then(|| {
                let mut steps = vec![say::stream()];
                steps.extend((0..EVENTS).map(|_| say::event(&large)));
                steps.extend([Step::Tell(all.clone()), say::end()]);
                steps
            })
        }
    };
    let (_tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let mut stream = agent.listen(&gate).await;
    assert!(stream.event().await.is_some());
    for _ in 0..50 {
        agent.good(&gate).await;
    }
    assert!(
        !all.is_open(),
        "everything was taken from the server already"
    );
    for _ in 1..EVENTS {
        assert!(stream.event().await.unwrap().len() <= 64 << 10);
    }
    all.wait().await;
    assert_eq!(stream.event().await, None);
    stop(gate).await;
}
