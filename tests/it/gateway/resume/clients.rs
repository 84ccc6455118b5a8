//! Clients that lost their stream and come back to it.

use serde_json::{Value, json};

use super::{
    super::{before, stop},
    PRIME, PROGRESS, TOLD, answer, call_id, finishing, named, places, rest_of, server,
};
use crate::support::{
    agent::Agent,
    client::{Ask, Reply},
    gate::{Gate, Policy, ends, eventually},
    sound,
    tools::{Latch, Seen, Step, Tools},
};

/// Primes the stream, reports progress, and waits for the client to go.
fn holding(gone: &Latch) -> Vec<Step> {
    vec![
        sound::stream(),
        sound::chunk(PRIME),
        named("s-1", PROGRESS),
        Step::Closed(gone.clone()),
    ]
}

fn resuming(agent: &Agent, id: &str) -> Ask {
    agent.bare("GET").with("Last-Event-ID", id)
}

fn code(reply: &Reply) -> (u16, Value) {
    let error = &reply.json()["error"];
    (reply.status, json!([error["code"], error["data"]["code"]]))
}

fn unknown() -> (u16, Value) {
    (400, json!([-32600, "mcp.resume_unknown"]))
}

/// Opens a call, reads its first two events, and leaves once they have come.
async fn lose(agent: &Agent, gate: &Gate, gone: &Latch, tool: &str) {
    let mut stream = gate.open(agent.call("\"a\"", tool)).await;
    assert!(stream.whole_event().await.is_some());
    assert_eq!(stream.event().await.as_deref(), Some(PROGRESS));
    drop(stream);
    gone.wait().await;
}

#[tokio::test]
async fn a_client_that_comes_back_gets_exactly_the_rest() {
    let gone = Latch::new();
    let script = server(holding(&gone), |_, call| {
        vec![
            sound::stream(),
            named("s-1", PROGRESS),
            named("s-2", &answer(call)),
            sound::end(),
        ]
    });
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    lose(&agent, &gate, &gone, "send_mail").await;
    let id = call_id(&tools);
    assert_eq!(places(&tools), [""; 0]);
    assert_eq!(ends(&gate.records()).last().unwrap(), "call intent");
    let rest = [
        format!("id: {id}.s-1\nevent: message\ndata: {PROGRESS}"),
        format!("id: {id}.s-2\nevent: message\ndata: {TOLD}"),
    ];
    let stream = gate.open(resuming(&agent, &format!("{id}.s-0"))).await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    assert_eq!(rest_of(stream).await, rest);
    assert_eq!(places(&tools), ["s-0"]);
    let ended = ends(&gate.records());
    assert_eq!(
        ended[2..],
        ["call intent", "request allowed", "call allowed"]
    );
    // The client lost the end of it again: the server has it still, and the call stays as it was recorded.
    let stream = gate.open(resuming(&agent, &format!("{id}.s-1"))).await;
    assert_eq!(rest_of(stream).await, rest);
    assert_eq!(places(&tools), ["s-0", "s-1"]);
    assert_eq!(tools.of("tools/call").len(), 1);
    assert_eq!(
        stop(gate).await[2..],
        [
            "call intent",
            "request allowed",
            "call allowed",
            "request allowed"
        ]
    );
}

/// Each connection may be another worker's.
#[tokio::test]
async fn a_client_may_come_back_to_any_worker() {
    let gone = Latch::new();
    let tools = Tools::start(server(holding(&gone), |_, call| finishing(call))).await;
    let policy = Policy::local("").server("s", tools.address, "", "");
    let gate = Gate::start_with(&policy, 4, "");
    let agent = Agent::modern("s").legacy(&gate).await;
    for _ in 0..16 {
        lose(&agent, &gate, &gone, "send_mail").await;
        let id = call_id(&tools);
        let reply = gate.send(resuming(&agent, &format!("{id}.s-1"))).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
    }
    let ended = ends(&gate.stop().await);
    let count = |end: &str| ended.iter().filter(|found| *found == end).count();
    assert_eq!((count("call intent"), count("call allowed")), (16, 16));
}

/// Lost again and again, also before anything new came.
#[tokio::test]
async fn a_client_may_come_back_more_than_once() {
    let gone = Latch::new();
    let script = {
        let gone = gone.clone();
        server(holding(&gone.clone()), move |returns, call| match returns {
            0 | 1 => vec![
                sound::stream(),
                sound::chunk(":\n\n"),
                Step::Closed(gone.clone()),
            ],
            _ => finishing(call),
        })
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    lose(&agent, &gate, &gone, "get_fault").await;
    let id = call_id(&tools);
    for returns in 1..3 {
        let stream = gate.open(resuming(&agent, &format!("{id}.s-1"))).await;
        eventually("the return", || places(&tools).len() == returns).await;
        drop(stream);
        gone.wait().await;
    }
    let reply = gate.send(resuming(&agent, &format!("{id}.s-1"))).await;
    assert_eq!(reply.json()["id"], "a");
    assert_eq!(places(&tools), ["s-1"; 3]);
    let ended = stop(gate).await;
    assert_eq!(ended.last().unwrap(), "call allowed");
}

/// A client may know that its connection is dead before we do.
#[tokio::test]
async fn the_newest_stream_has_the_call() {
    let gone = Latch::new();
    let (tools, gate) = before(server(holding(&gone), |_, call| finishing(call)), "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let mut before = gate.open(agent.call("\"a\"", "get_fault")).await;
    before.whole_event().await.unwrap();
    assert_eq!(before.event().await.as_deref(), Some(PROGRESS));
    let id = call_id(&tools);
    let reply = gate.send(resuming(&agent, &format!("{id}.s-1"))).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
    assert_eq!(rest_of(before).await, [""; 0]);
    gone.wait().await;
    stop(gate).await;
}

#[tokio::test]
async fn nobody_comes_back_to_what_is_not_theirs() {
    let gone = Latch::new();
    let (tools, gate) = before(server(holding(&gone), |_, call| finishing(call)), "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let other = Agent::modern("s").legacy(&gate).await;
    lose(&agent, &gate, &gone, "get_fault").await;
    let id = call_id(&tools);
    let ours = format!("{id}.s-1");
    assert_eq!(code(&gate.send(resuming(&other, &ours)).await), unknown());
    for id in [
        "s-1",
        "1",
        &format!("{id}."),
        &format!("{}.s-1", id + 1),
        "g.",
        "x.1",
    ] {
        assert_eq!(
            code(&gate.send(resuming(&agent, id)).await),
            unknown(),
            "{id}"
        );
    }
    let stranger = Agent {
        session: Some("unknown".to_owned()),
        ..agent.clone()
    };
    let reply = gate.send(resuming(&stranger, &ours)).await;
    assert_eq!(code(&reply), (404, json!([-32600, "mcp.session_unknown"])));
    let reply = gate.send(resuming(&agent, &ours)).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
    assert_eq!(places(&tools), ["s-1"]);
    // After the answer, too, it is only its own session's.
    assert_eq!(code(&gate.send(resuming(&other, &ours)).await), unknown());
    stop(gate).await;
}

/// A call that waits has its own end, and leaves a record and no more.
#[tokio::test]
async fn a_call_whose_client_does_not_come_back_ends() {
    let gone = Latch::new();
    let table = "[limits]\ntimeout = \"1s\"\n";
    for end in ["cancelled", "session", "deadline"] {
        let script = server(holding(&gone), |_, call| finishing(call));
        let (tools, gate) = before(script, if end == "deadline" { table } else { "" }).await;
        let agent = Agent::modern("s").legacy(&gate).await;
        lose(&agent, &gate, &gone, "send_mail").await;
        let id = call_id(&tools);
        match end {
            "cancelled" => {
                let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#;
                assert_eq!(gate.send(agent.post(cancel)).await.status, 202);
            }
            "session" => assert_eq!(gate.send(agent.bare("DELETE")).await.status, 200),
            _ => {}
        }
        eventually("the record", || {
            ends(&gate.records()).contains(&"call failed listen.client_gone".to_owned())
        })
        .await;
        if end != "session" {
            eventually("the server is told", || {
                tools.of("notifications/cancelled").len() == 1
            })
            .await;
            let told = &tools.of("notifications/cancelled")[0];
            assert_eq!(told.json["params"]["requestId"], id);
            let reply = gate.send(resuming(&agent, &format!("{id}.s-1"))).await;
            assert_eq!(code(&reply), unknown());
        }
        assert_eq!(tools.of("GET").len(), 0);
        let ended = stop(gate).await;
        let of_call = ended.iter().filter(|end| end.starts_with("call "));
        assert_eq!(of_call.count(), 2, "{ended:?}");
    }
}

#[tokio::test]
async fn calls_that_wait_are_bounded() {
    let gone = Latch::new();
    let (_tools, gate) = before(server(holding(&gone), |_, call| finishing(call)), "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    for id in 0..17 {
        let call = agent.call_apart(&id.to_string(), "get_fault");
        let mut stream = gate.open(call).await;
        assert_eq!(stream.event().await.as_deref(), Some(PROGRESS));
        drop(stream);
        gone.wait().await;
    }
    let gone = || {
        let ended = ends(&gate.records());
        let gone = ended.iter().filter(|end| end.ends_with("client_gone"));
        gone.count()
    };
    eventually("one too many", || gone() == 1).await;
    // The process does not wait for those that do.
    let ended = ends(&gate.stop().await);
    let gone = ended.iter().filter(|end| end.ends_with("client_gone"));
    assert_eq!(gone.count(), 17);
}

#[tokio::test]
async fn a_listening_stream_is_resumed() {
    const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let script = |seen: &Seen| {
        (seen.method() == "GET").then(|| {
            let event = format!("id: e.1\nretry: 5\ndata:\n\nid: e.2\ndata: {CHANGED}\n\n");
            vec![sound::stream(), sound::chunk(&event), sound::end()]
        })
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let events = [
        "id: g.e.1\nretry: 100\ndata: ".to_owned(),
        format!("id: g.e.2\nevent: message\ndata: {CHANGED}"),
    ];
    assert_eq!(rest_of(agent.listen(&gate).await).await, events);
    let stream = gate.open(resuming(&agent, "g.e.2")).await;
    assert_eq!(rest_of(stream).await, events);
    assert_eq!(places(&tools), ["e.2"]);
    assert_eq!(tools.of("GET").len(), 2);
    stop(gate).await;
}

/// A call is resumed beside the one listening stream.
#[tokio::test]
async fn coming_back_takes_no_listening_place() {
    let gone = Latch::new();
    let listening = server(holding(&gone), |_, call| finishing(call));
    let script = move |seen: &Seen| match (seen.method(), seen.header("last-event-id")) {
        ("GET", None) => Some(vec![sound::stream(), Step::Hang]),
        _ => listening(seen),
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    lose(&agent, &gate, &gone, "get_fault").await;
    let listening = agent.listen(&gate).await;
    let id = call_id(&tools);
    let reply = gate.send(resuming(&agent, &format!("{id}.s-1"))).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
    drop(listening);
    stop(gate).await;
}

/// What the server asked before the stream was lost is still the client's to answer.
#[tokio::test]
async fn questions_stay_open_while_a_call_waits() {
    const QUESTION: &str = r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#;
    let gone = Latch::new();
    let first = vec![
        sound::stream(),
        named("s-1", QUESTION),
        Step::Closed(gone.clone()),
    ];
    let script = server(first, |_, call| finishing(call));
    let (tools, gate) = before(script, "[relay]\nsampling = true\n").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let mut stream = gate.open(agent.call("\"a\"", "get_fault")).await;
    let asked: Value = serde_json::from_str(&stream.event().await.unwrap()).unwrap();
    drop(stream);
    gone.wait().await;
    let said = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, asked["id"]);
    assert_eq!(gate.send(agent.post(&said)).await.status, 202);
    assert_eq!(
        tools.of("POST")[0].text,
        r#"{"jsonrpc":"2.0","id":"q","result":{}}"#
    );
    let id = call_id(&tools);
    let reply = gate.send(resuming(&agent, &format!("{id}.s-1"))).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
    stop(gate).await;
}
