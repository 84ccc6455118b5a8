//! A session that the server no longer knows is opened anew, once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};

use super::{before, sound, stop};
use crate::support::{agent::Agent, sound as say, tools::Seen};

#[tokio::test]
async fn an_expired_session_is_opened_anew_and_the_call_repeated_once() {
    let (tools, gate) = sound().await;
    let agent = Agent::modern("s").legacy(&gate).await;
    agent.good(&gate).await;
    tools.forget_sessions();
    let reply = gate.send(agent.call("2", "send_mail")).await;
    assert_eq!(
        reply.body,
        r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"ok send_mail"}],"_meta":{"io.tollgate/untrusted":{"server":"s"}}}}"#
    );
    assert_eq!(tools.of("initialize").len(), 2);
    assert_eq!(tools.of("notifications/initialized").len(), 2);
    let calls = tools.of("tools/call");
    let sessions: Vec<_> = calls[1..]
        .iter()
        .map(|seen| seen.header("mcp-session-id"))
        .collect();
    assert_eq!(sessions, [Some("up-1"), Some("up-2")]);
    assert_eq!(
        tools.of("initialize")[1].json["params"],
        tools.of("initialize")[0].json["params"]
    );
    agent.good(&gate).await;
    assert_eq!(tools.of("initialize").len(), 2);
    stop(gate).await;
}

#[tokio::test]
async fn ten_calls_at_once_open_one_new_session() {
    let (tools, gate) = sound().await;
    let agent = &Agent::modern("s").legacy(&gate).await;
    agent.good(&gate).await;
    tools.forget_sessions();
    let gate = &gate;
    let calls = (0..10).map(|id| async move {
        gate.send(agent.call_apart(&id.to_string(), "get_weather"))
            .await
    });
    for (id, reply) in futures_util::future::join_all(calls)
        .await
        .into_iter()
        .enumerate()
    {
        assert_eq!(reply.json()["id"], id);
        assert_eq!(
            reply.json()["result"]["content"][0]["text"],
            "ok get_weather",
            "{}",
            reply.body
        );
    }
    assert_eq!(tools.of("initialize").len(), 2);
    let last: Vec<_> = tools
        .of("tools/call")
        .iter()
        .rev()
        .take(10)
        .map(|seen| seen.header("mcp-session-id").unwrap().to_owned())
        .collect();
    assert_eq!(last, ["up-2"; 10]);
}

/// The reply by which a client knows that it has to start anew.
fn lost() -> Value {
    let remedy = "start a new session with `initialize`";
    json!({"jsonrpc":"2.0","id":1,"error":{"code":-32600,
        "message":format!("upstream.session_lost: server `s` ended the session and did not open another; {remedy}"),
        "data":{"code":"upstream.session_lost","remedy":remedy}}})
}

#[tokio::test]
async fn a_server_that_forgets_at_once_is_given_up() {
    let script =
        |seen: &Seen| (seen.tool() == "get_fault").then(|| say::status(404, "text/plain", "no"));
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let reply = gate.send(agent.call("1", "get_fault")).await;
    assert_eq!((reply.status, reply.json()), (404, lost()));
    assert_eq!(tools.of("initialize").len(), 2);
    assert_eq!(tools.of("tools/call").len(), 2);
    // The client starts anew, as a 404 has it do.
    assert_eq!(gate.metric("tollgate_mcp_sessions"), 0);
    assert_eq!(gate.send(agent.call("1", "get_weather")).await.status, 404);
    agent.legacy(&gate).await.good(&gate).await;
    assert!(
        stop(gate)
            .await
            .contains(&"call failed upstream.session_lost".to_owned())
    );
}

#[tokio::test]
async fn a_server_that_opens_no_other_session_is_given_up() {
    let refuses = Arc::new(AtomicBool::new(false));
    let script = {
        let refuses = refuses.clone();
        move |seen: &Seen| {
            let refused = seen.method() == "initialize" && refuses.load(Ordering::SeqCst);
            refused.then(|| {
                say::json(r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"full"}}"#)
            })
        }
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    agent.good(&gate).await;
    // Each in a session of its own, since none outlives what it was told.
    for method in ["tools/call", "tools/list", "prompts/list"] {
        let agent = Agent::modern("s").legacy(&gate).await;
        tools.forget_sessions();
        refuses.store(true, Ordering::SeqCst);
        let ask = agent.request("1", method, r#""name":"get_weather""#);
        let reply = gate.send(ask).await;
        assert_eq!((reply.status, reply.json()), (404, lost()));
        refuses.store(false, Ordering::SeqCst);
        let reply = gate.send(agent.call("1", "get_weather")).await;
        assert_eq!(reply.json()["error"]["data"]["code"], "mcp.session_unknown");
    }
    // A server that is well again by then has its other sessions opened anew.
    agent.good(&gate).await;
    stop(gate).await;
}

/// The stream of what a server says unasked is opened in the new session, from its beginning.
#[tokio::test]
async fn a_listening_stream_opens_an_expired_session_anew() {
    const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let offers = Arc::new(AtomicBool::new(true));
    let script = {
        let offers = offers.clone();
        move |seen: &Seen| match (seen.method(), seen.header("mcp-session-id")) {
            ("GET", Some("up-2")) if offers.load(Ordering::SeqCst) => Some(say::events(&[CHANGED])),
            ("GET", _) => Some(say::status(404, "text/plain", "no")),
            _ => None,
        }
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let ask = agent.bare("GET").with("Last-Event-ID", "g.e.1");
    let mut stream = gate.open(ask).await;
    assert_eq!(stream.event().await.as_deref(), Some(CHANGED));
    assert_eq!(stream.event().await, None);
    let places: Vec<_> = tools
        .of("GET")
        .iter()
        .map(|seen| seen.header("last-event-id").map(str::to_owned))
        .collect();
    assert_eq!(places, [Some("e.1".to_owned()), None]);
    assert_eq!(tools.of("initialize").len(), 2);
    // Where the next one is no better, the client starts anew.
    offers.store(false, Ordering::SeqCst);
    let reply = gate.send(agent.bare("GET")).await;
    assert_eq!(reply.status, 404);
    assert_eq!(
        reply.json()["error"]["data"]["code"],
        "upstream.session_lost"
    );
    assert_eq!(gate.metric("tollgate_mcp_sessions"), 0);
    assert_eq!(gate.send(agent.call("1", "get_weather")).await.status, 404);
    assert!(
        stop(gate)
            .await
            .contains(&"request failed upstream.session_lost".to_owned())
    );
}
