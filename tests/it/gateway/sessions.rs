//! Sessions of 2025-11-25.

use serde_json::{Value, json};

use super::{before, sound, stop};
use crate::support::{
    agent::Agent,
    gate::{Gate, Policy, ends, eventually},
    sound as say,
    tools::{LIST, Latch, Seen, Step, Tools},
};

fn code(body: &Value) -> (&Value, &Value) {
    let error = &body["error"];
    (&error["code"], &error["data"]["code"])
}

#[tokio::test]
async fn a_session_opens_and_ends_on_both_sides() {
    let (tools, gate) = sound().await;
    for version in ["2025-11-25", "2025-06-18", "1999-01-01"] {
        let welcome = gate.send(Agent::modern("s").initialize(version)).await;
        assert_eq!(welcome.status, 200);
        assert_eq!(
            welcome.body,
            r#"{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"t","version":"1"}}}"#
        );
        let session = welcome.header("mcp-session-id").unwrap().to_owned();
        assert!(
            !session.contains("up-"),
            "the server's own id is not the client's to know"
        );
        let agent = Agent {
            session: Some(session),
            ..Agent::modern("s")
        };
        agent.good(&gate).await;
        let ping = gate.send(agent.request("9", "ping", "")).await;
        assert_eq!(
            (ping.status, &*ping.body),
            (200, r#"{"jsonrpc":"2.0","id":9,"result":{}}"#)
        );
        let older = agent
            .call("1", "get_weather")
            .set("MCP-Protocol-Version", "2024-11-05");
        let reply = gate.send(older).await;
        assert_eq!(reply.status, 400);
        assert_eq!(reply.json()["error"]["data"]["requested"], "2024-11-05");
        let unnamed = agent
            .call("1", "get_weather")
            .without("MCP-Protocol-Version");
        assert_eq!(gate.send(unnamed).await.status, 200);
        assert_eq!(gate.metric("tollgate_mcp_sessions"), 1);
        assert_eq!(gate.send(agent.bare("DELETE")).await.status, 200);
        assert_eq!(gate.metric("tollgate_mcp_sessions"), 0);
        for ask in [
            agent.call("1", "get_weather"),
            agent.bare("GET"),
            agent.bare("DELETE"),
        ] {
            let reply = gate.send(ask).await;
            assert_eq!(reply.status, 404);
            assert_eq!(
                code(&reply.json()),
                (&json!(-32600), &json!("mcp.session_unknown"))
            );
        }
    }
    // A revision that is not known is asked for in the newest; what the server answers holds.
    for (hello, version) in
        tools
            .of("initialize")
            .iter()
            .zip(["2025-11-25", "2025-06-18", "2025-11-25"])
    {
        assert_eq!(
            hello.json["params"],
            json!({"protocolVersion":version,"capabilities":{},"clientInfo":{"name":"c","version":"1"}})
        );
    }
    assert_eq!(tools.of("DELETE")[2].header("mcp-session-id"), Some("up-3"));
    assert_eq!(tools.of("ping").len(), 0);
    stop(gate).await;
}

#[tokio::test]
async fn a_session_serves_only_whoever_opened_it() {
    let tools = Tools::start(|_| None).await;
    let (first, second, bob) = ("tg_first_key_1", "tg_second_key_1", "tg_bobs_key_1");
    let policy = Policy::keys(
        &[
            (first, "agent = \"a\"\nuser = \"ann\""),
            (second, "agent = \"a\"\nuser = \"ann\""),
            (bob, "agent = \"a\"\nuser = \"bob\""),
        ],
        "",
    )
    .server("s", tools.address, "access = \"everyone\"", "")
    .server("r", tools.address, "access = \"everyone\"", "");
    let gate = Gate::start(&policy);
    let ann = Agent::modern("s").with_key(first).legacy(&gate).await;
    let foreign = [
        ann.clone().with_key(second),
        ann.clone().with_key(bob),
        Agent {
            server: "r".to_owned(),
            ..ann.clone()
        },
        Agent {
            session: Some("unknown".to_owned()),
            ..ann.clone()
        },
    ];
    for agent in &foreign {
        for ask in [
            agent.call("1", "get_weather"),
            agent.bare("GET"),
            agent.bare("DELETE"),
        ] {
            let reply = gate.send(ask).await;
            assert_eq!(reply.status, 404);
            assert_eq!(code(&reply.json()).1, &json!("mcp.session_unknown"));
        }
    }
    for ask in [
        ann.call("1", "get_weather").without("Mcp-Session-Id"),
        ann.bare("GET").without("Mcp-Session-Id"),
        ann.bare("DELETE").without("Mcp-Session-Id"),
    ] {
        let reply = gate.send(ask).await;
        assert_eq!(reply.status, 400);
        assert_eq!(
            code(&reply.json()),
            (&json!(-32600), &json!("mcp.session_required"))
        );
    }
    ann.good(&gate).await;
    let ended = ends(&gate.stop().await);
    let count = |end: &str| ended.iter().filter(|found| *found == end).count();
    assert_eq!(count("request refused mcp.session_unknown"), 12);
    assert_eq!(count("request refused mcp.session_required"), 3);
}

#[tokio::test]
async fn a_stream_relays_what_the_server_says_unasked() {
    const CHANGED: &str =
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","x":1.0}"#;
    let more = Latch::new();
    let script = {
        let more = more.clone();
        move |seen: &Seen| {
            (seen.method() == "GET").then(|| {
                vec![
                    say::stream(),
                    say::event(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#),
                    say::event(CHANGED),
                    Step::Wait(more.clone()),
                    say::event(r#"{"jsonrpc":"2.0","method":"notifications/tasks/status"}"#),
                    say::event(CHANGED),
                    Step::Hang,
                ]
            })
        }
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let mut stream = agent.listen(&gate).await;
    assert_eq!(
        (stream.status(), stream.header("content-type")),
        (200, Some("text/event-stream"))
    );
    assert_eq!(stream.event().await.as_deref(), Some(CHANGED));
    eventually("the ping's answer", || tools.of("POST").len() == 1).await;
    assert_eq!(
        tools.of("POST")[0].text,
        r#"{"jsonrpc":"2.0","id":"p","result":{}}"#
    );
    let second = gate.send(agent.bare("GET")).await;
    assert_eq!(second.status, 409);
    assert_eq!(code(&second.json()).1, &json!("mcp.already_listening"));
    more.open();
    assert_eq!(stream.event().await.as_deref(), Some(CHANGED));
    agent.good(&gate).await;
    // The client goes, and its place is free again.
    drop(stream);
    eventually("the server's stream ends", || tools.open() <= 1).await;
    let mut again = agent.listen(&gate).await;
    assert_eq!(again.status(), 200);
    assert_eq!(gate.send(agent.bare("DELETE")).await.status, 200);
    while again.event().await.is_some() {}
    assert!(again.complete);
    let ended = stop(gate).await;
    assert!(
        ended.contains(&"request refused mcp.already_listening".to_owned()),
        "{ended:?}"
    );
    // A client ends its stream by going away.
    assert!(
        !ended.iter().any(|end| end.contains("client_gone")),
        "{ended:?}"
    );
}

#[tokio::test]
async fn a_server_without_a_stream_is_said_to_have_none() {
    let (_tools, gate) = sound().await;
    let agent = Agent::modern("s").legacy(&gate).await;
    for _ in 0..2 {
        let reply = agent.listen(&gate).await.whole().await;
        assert_eq!(
            (reply.status, &reply.json()["error"]["code"]),
            (405, &json!("listen.method_not_allowed"))
        );
    }
    let modern = gate
        .send(agent.bare("GET").set("MCP-Protocol-Version", "2026-07-28"))
        .await;
    assert_eq!(modern.status, 405);
    stop(gate).await;
}

/// A server that holds a call until its connection is closed.
fn holding(
    came: &Latch,
    gone: &Latch,
) -> impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static {
    let (came, gone) = (came.clone(), gone.clone());
    move |seen: &Seen| {
        let held = |first| vec![first, Step::Tell(came.clone()), Step::Closed(gone.clone())];
        match seen.tool() {
            "get_fault" => Some(held(say::stream())),
            "send_mail" => Some(held(Step::Say(Vec::new()))),
            _ => None,
        }
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_on_both_sides_without_an_answer() {
    let (came, gone) = (Latch::new(), Latch::new());
    let tools = Tools::start(holding(&came, &gone)).await;
    // Call and cancellation may be served by different workers.
    let policy = Policy::local("").server("s", tools.address, "", "");
    let gate = Gate::start_with(&policy, 3, "");
    let agent = Agent::modern("s").legacy(&gate).await;
    for (at, tool) in ["get_fault", "send_mail"].into_iter().enumerate() {
        let call = gate.send(agent.call(r#""c\u0061""#, tool));
        let cancel = async {
            came.wait().await;
            let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{ "requestId" : "ca","reason":"late"}}"#;
            let reply = gate.send(agent.post(cancel)).await;
            assert_eq!((reply.status, &*reply.body), (202, ""));
            gone.wait().await;
        };
        let (reply, ()) = tokio::join!(call, cancel);
        assert_eq!(
            (reply.status, reply.header("content-type"), &*reply.body),
            (200, Some("text/event-stream"), "")
        );
        eventually("the server is told", || {
            tools.of("notifications/cancelled").len() == at + 1
        })
        .await;
        let told = &tools.of("notifications/cancelled")[at];
        let calls = tools.of("tools/call");
        let id = &calls.iter().find(|seen| seen.tool() == tool).unwrap().json["id"];
        assert_eq!(
            told.text,
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{ "requestId" : {id},"reason":"late"}}}}"#
            )
        );
        agent.good(&gate).await;
    }
    let stray =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"none"}}"#;
    assert_eq!(gate.send(agent.post(stray)).await.status, 202);
    assert_eq!(tools.of("notifications/cancelled").len(), 2);
    let ended = stop(gate).await;
    assert_eq!(
        ended
            .iter()
            .filter(|end| *end == "call failed gateway.cancelled")
            .count(),
        2,
        "{ended:?}"
    );
}

/// A call that waits for the list of tools has not been sent yet, and will not be.
#[tokio::test]
async fn a_call_that_is_cancelled_before_it_is_sent_is_not_sent() {
    let (came, list) = (Latch::new(), Latch::new());
    let script = {
        let (came, list) = (came.clone(), list.clone());
        move |seen: &Seen| {
            let wait = vec![Step::Tell(came.clone()), Step::Wait(list.clone())];
            (seen.method() == "tools/list").then(|| [wait, say::result(false, LIST)].concat())
        }
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let cancel = async {
        came.wait().await;
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        assert_eq!(gate.send(agent.post(cancel)).await.status, 202);
        list.open();
        // For the modern client, at the end.
        list.open();
    };
    let (reply, ()) = tokio::join!(gate.send(agent.call("1", "send_mail")), cancel);
    assert_eq!((reply.status, &*reply.body), (200, ""));
    assert_eq!(tools.of("tools/call").len(), 0);
    assert!(
        stop(gate)
            .await
            .contains(&"call failed gateway.cancelled".to_owned())
    );
}

#[tokio::test]
async fn a_session_that_ends_stops_its_calls() {
    let (came, gone) = (Latch::new(), Latch::new());
    let (tools, gate) = before(holding(&came, &gone), "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let end = async {
        came.wait().await;
        assert_eq!(gate.send(agent.bare("DELETE")).await.status, 200);
        gone.wait().await;
    };
    let (reply, ()) = tokio::join!(gate.send(agent.call("1", "get_fault")), end);
    assert_eq!((reply.status, &*reply.body), (200, ""));
    assert_eq!(tools.of("DELETE").len(), 1);
    assert!(
        stop(gate)
            .await
            .contains(&"call failed gateway.cancelled".to_owned())
    );
}

#[tokio::test]
async fn an_id_in_flight_is_not_taken_twice() {
    let (came, gone) = (Latch::new(), Latch::new());
    let (_tools, gate) = before(holding(&came, &gone), "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let running = gate.open(agent.call("1", "get_fault")).await;
    came.wait().await;
    let reply = gate.send(agent.call("1", "get_weather")).await;
    assert_eq!(
        (reply.status, code(&reply.json()).1),
        (400, &json!("mcp.duplicate_id"))
    );
    let other = gate.send(agent.call("\"1\"", "get_weather")).await;
    assert_eq!(
        other.json()["result"]["content"][0]["text"],
        "ok get_weather"
    );
    drop(running);
    gone.wait().await;
    stop(gate).await;
}
