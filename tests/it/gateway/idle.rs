//! Sessions that nobody uses any more: their servers are told.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode};
use tokio::time;
use tollgate::{
    gateway::{Ask, Gateway},
    identity::Identity,
    policy::Snapshot,
};

use super::{before, quiet, stop};
use crate::support::{
    agent::Agent,
    client::Exchange,
    gate::eventually,
    permit::Maker,
    pipeline::Pipeline,
    sound as say,
    tools::{Latch, Seen, Step, Tools},
};

/// As long as a session may be idle.
const HOUR: Duration = Duration::from_secs(60 * 60);

async fn initialize(gateway: &Gateway, policy: &Arc<Snapshot>) {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let request = Request::post("/mcp/demo")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    let head = request.body(()).unwrap().into_parts().0;
    let identity = Identity::local("ann", "default");
    let ask = Ask {
        caller: identity.identify(&head.headers, policy).unwrap(),
        policy: policy.clone(),
        server: "demo".into(),
        head,
        body: Bytes::from_static(body.as_bytes()),
        started: time::Instant::now(),
        request_id: uuid::Uuid::new_v4(),
    };
    let reply = gateway.serve(&ask).await;
    assert_eq!(reply.status(), StatusCode::OK);
}

#[tokio::test]
async fn idle_sessions_end_at_their_servers_a_few_at_once() {
    let (came, more) = (Latch::new(), Latch::new());
    let script = {
        let (came, more) = (came.clone(), more.clone());
        move |seen: &Seen| {
            let held = vec![Step::Tell(came.clone()), Step::Wait(more.clone())];
            let answer = say::status(200, "text/plain", "");
            (seen.method() == "DELETE").then(|| [held, answer].concat())
        }
    };
    let tools = Tools::start(script).await;
    let url = format!("http://{}/mcp", tools.address);
    let policy = Arc::new(Maker::new(&url).granting("127.0.0.1").snapshot());
    let pipeline = Pipeline::new();
    let gateway = &pipeline.gateway;
    for _ in 0..20 {
        initialize(gateway, &policy).await;
    }
    gateway.sweep(&policy);
    time::pause();
    time::advance(HOUR / 2).await;
    initialize(gateway, &policy).await;
    gateway.sweep(&policy);
    time::advance(HOUR / 2).await;
    gateway.sweep(&policy);
    time::resume();
    for _ in 0..16 {
        came.wait().await;
        more.open();
    }
    let mut ended: Vec<_> = tools
        .of("DELETE")
        .iter()
        .map(|seen| seen.header("mcp-session-id").unwrap().to_owned())
        .collect();
    ended.sort();
    ended.dedup();
    assert_eq!(ended.len(), 16);
    assert!(!ended.contains(&"up-21".to_owned()), "it was used since");
}

/// A stream that breaks after hours of silence leaves its client time to open another.
#[tokio::test]
async fn a_session_was_in_use_for_as_long_as_its_stream() {
    let gone = Latch::new();
    let script = {
        let gone = gone.clone();
        let event = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        move |seen: &Seen| {
            let steps = [say::stream(), say::event(event), Step::Closed(gone.clone())];
            (seen.method() == "GET").then(|| steps.to_vec())
        }
    };
    let tools = Tools::start(script).await;
    let pipeline = Pipeline::new();
    let door = pipeline.listen(quiet::policy(&tools));
    let policy = quiet::policy(&tools);
    let session = quiet::session(door).await;
    let mut stream = door.open(session.bare("GET")).await;
    assert!(stream.event().await.is_some());
    time::pause();
    time::advance(2 * HOUR).await;
    time::resume();
    drop(stream);
    gone.wait().await;
    pipeline.gateway.sweep(&policy);
    assert_eq!(door.open(session.bare("GET")).await.status(), 200);
    assert_eq!(tools.of("DELETE").len(), 0);
}

#[tokio::test]
async fn a_session_that_nobody_waits_for_ends_as_soon_as_it_is_there() {
    let (came, more) = (Latch::new(), Latch::new());
    let script = {
        let (came, more) = (came.clone(), more.clone());
        move |seen: &Seen| {
            let held = vec![Step::Tell(came.clone()), Step::Wait(more.clone())];
            let welcome = say::welcome("up-77", "2025-11-25");
            (seen.method() == "initialize").then(|| [held, welcome].concat())
        }
    };
    let (tools, gate) = before(script, "").await;
    let ask = Agent::modern("s").initialize("2025-11-25");
    let bytes = ask.bytes(&gate.address.to_string());
    let client = Exchange::unanswered(gate.connect().await, &bytes).await;
    came.wait().await;
    drop(client);
    eventually("the client is missed", || {
        gate.metric("tollgate_listen_connections") == 0
    })
    .await;
    more.open();
    eventually("the server is told", || !tools.of("DELETE").is_empty()).await;
    let told = tools.of("DELETE").pop().unwrap();
    assert_eq!(told.header("mcp-session-id"), Some("up-77"));
    assert_eq!(stop(gate).await, ["request failed listen.client_gone"]);
}
