//! Streams of sessions that end before their answer: Tollgate goes on with the server's, and clients with Tollgate's.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use serde_json::{Value, json};

use super::{before, stop};
use crate::support::{
    agent::Agent,
    client::{Ask, Exchange, Reply},
    gate::{Gate, ends, eventually},
    sound,
    tools::{LIST, Latch, Seen, Step, Tools},
};

const PROGRESS: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#;
const PRIME: &str = "id: s-0\nretry: 100\ndata: \n\n";

/// A server that begins the answer to a call with `first`; `rest` says what it sends to a client that comes back, told
/// how often that was and the id of the last call.
fn server(
    first: Vec<Step>,
    rest: impl Fn(usize, u64) -> Vec<Step> + Send + Sync + 'static,
) -> impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static {
    let (call, returns) = (AtomicU64::default(), AtomicUsize::default());
    move |seen: &Seen| match (seen.method(), seen.header("last-event-id")) {
        ("tools/call", _) if seen.tool() != "get_weather" => {
            call.store(seen.json["id"].as_u64().unwrap(), Ordering::SeqCst);
            Some(first.clone())
        }
        ("GET", Some(_)) => Some(rest(
            returns.fetch_add(1, Ordering::SeqCst),
            call.load(Ordering::SeqCst),
        )),
        _ => None,
    }
}

/// Primes the stream and closes it.
fn closing() -> Vec<Step> {
    vec![sound::stream(), sound::chunk(PRIME), sound::end()]
}

/// Primes the stream, reports progress, and waits for the client to go.
fn holding(gone: &Latch) -> Vec<Step> {
    vec![
        sound::stream(),
        sound::chunk(PRIME),
        named("s-1", PROGRESS),
        Step::Closed(gone.clone()),
    ]
}

/// The answer as event `s-2`, and the end.
fn finishing(call: u64) -> Vec<Step> {
    vec![sound::stream(), named("s-2", &answer(call)), sound::end()]
}

fn named(id: &str, data: &str) -> Step {
    sound::chunk(&format!("id: {id}\ndata: {data}\n\n"))
}

fn answer(call: u64) -> String {
    sound::message(false, &sound::text("done")).replace("$ID", &call.to_string())
}

/// The answer as the client sees it.
const DONE: &str =
    r#"{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"done"}]}}"#;

/// The id under which the server knows its last call.
fn call_id(tools: &Tools) -> u64 {
    let calls = tools.of("tools/call");
    let call = calls.iter().rfind(|seen| seen.tool() != "get_weather");
    call.unwrap().json["id"].as_u64().unwrap()
}

fn places(tools: &Tools) -> Vec<String> {
    let gets = tools.of("GET");
    let places = gets.iter().filter_map(|seen| seen.header("last-event-id"));
    places.map(str::to_owned).collect()
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

async fn rest_of(mut stream: Exchange) -> Vec<String> {
    let mut events = Vec::new();
    while let Some(event) = stream.whole_event().await {
        events.push(event);
    }
    assert!(stream.complete);
    events
}

#[tokio::test]
async fn a_server_that_closes_its_stream_is_asked_for_the_rest() {
    let script = server(closing(), |returns, call| match returns {
        0 => vec![sound::stream(), named("s-1", PROGRESS), sound::end()],
        _ => finishing(call),
    });
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let stream = gate.open(agent.call("\"a\"", "send_mail")).await;
    let events = rest_of(stream).await;
    let id = call_id(&tools);
    assert_eq!(
        events,
        [
            format!("id: {id}.s-0\nretry: 100\ndata: "),
            format!("id: {id}.s-1\nevent: message\ndata: {PROGRESS}"),
            format!("id: {id}.s-2\nevent: message\ndata: {DONE}"),
        ]
    );
    assert_eq!(places(&tools), ["s-0", "s-1"]);
    for seen in tools.of("GET") {
        assert_eq!(seen.header("mcp-session-id"), Some("up-1"));
        assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"));
        assert_eq!(seen.header("accept"), Some("text/event-stream"));
    }
    assert_eq!(tools.of("tools/call").len(), 1);
    assert_eq!(
        stop(gate).await,
        [
            "request allowed",
            "request allowed",
            "call intent",
            "call allowed"
        ]
    );
}

#[tokio::test]
async fn a_connection_that_breaks_is_gone_on_with() {
    let first = vec![
        sound::stream(),
        sound::chunk("id: s-0\ndata:\n\nid: s-1\ndata: cut o"),
        Step::Close,
    ];
    let (tools, gate) = before(server(first, |_, call| finishing(call)), "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let reply = gate.send(agent.call("\"a\"", "get_fault")).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
    assert_eq!(places(&tools), ["s-0"]);
    stop(gate).await;
}

/// Answers that are looked at whole are gone on with as well.
#[tokio::test]
async fn a_list_is_gone_on_with() {
    let id = Arc::new(AtomicU64::default());
    let script = move |seen: &Seen| match seen.method() {
        "tools/list" => {
            id.store(seen.json["id"].as_u64().unwrap(), Ordering::SeqCst);
            Some(closing())
        }
        "GET" => {
            let id = id.load(Ordering::SeqCst).to_string();
            let list = sound::message(false, LIST).replace("$ID", &id);
            Some(sound::events(&[&list]))
        }
        _ => None,
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let reply = gate.send(agent.request("1", "tools/list", "")).await;
    assert_eq!(reply.json()["result"]["tools"][0]["name"], "get_weather");
    assert_eq!(places(&tools), ["s-0"]);
    stop(gate).await;
}

#[tokio::test]
async fn three_returns_without_anything_new_are_enough() {
    let nothing = || vec![sound::stream(), sound::end()];
    let again = || vec![sound::stream(), sound::chunk(PRIME), sound::end()];
    let script = server(closing(), move |returns, _| match returns {
        1 => again(),
        _ => nothing(),
    });
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let reply = gate.send(agent.call("1", "get_fault")).await;
    assert_eq!(agent.refusal(&reply), "upstream.no_answer");
    assert_eq!(places(&tools), ["s-0"; 3]);
    assert!(
        stop(gate)
            .await
            .contains(&"call failed upstream.no_answer".to_owned())
    );
}

#[tokio::test]
async fn something_new_counts_the_returns_anew() {
    let script = server(closing(), |returns, call| match returns {
        6 => finishing(call),
        _ => vec![
            sound::stream(),
            sound::chunk(&format!("id: p-{returns}\ndata:\n\n")),
            sound::end(),
        ],
    });
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let reply = gate.send(agent.call("1", "get_fault")).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
    assert_eq!(
        places(&tools),
        ["s-0", "p-0", "p-1", "p-2", "p-3", "p-4", "p-5"]
    );
    stop(gate).await;
}

#[tokio::test]
async fn a_server_that_refuses_the_return_has_not_answered() {
    for status in [400, 404, 405, 409] {
        let script = server(closing(), move |_, _| {
            sound::status(status, "text/plain", "")
        });
        let (tools, gate) = before(script, "").await;
        let agent = Agent::modern("s").legacy(&gate).await;
        let reply = gate.send(agent.call("1", "get_fault")).await;
        assert_eq!(agent.refusal(&reply), "upstream.no_answer");
        assert_eq!(places(&tools), ["s-0"]);
        stop(gate).await;
    }
}

/// An id that no header can carry is none, and takes away the place before it.
#[tokio::test]
async fn without_an_id_there_is_no_return() {
    for event in ["id: a b\ndata:\n\n", "id:\ndata:\n\n", "data:\n\n"] {
        let mut first = vec![sound::stream()];
        if event.starts_with("id") {
            first.push(sound::chunk(PRIME));
        }
        first.extend([sound::chunk(event), sound::end()]);
        let (tools, gate) = before(server(first, |_, call| finishing(call)), "").await;
        let agent = Agent::modern("s").legacy(&gate).await;
        let reply = gate.send(agent.call("1", "get_fault")).await;
        assert_eq!(agent.refusal(&reply), "upstream.no_answer");
        assert_eq!(tools.of("GET").len(), 0);
        stop(gate).await;
    }
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
        format!("id: {id}.s-2\nevent: message\ndata: {DONE}"),
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
        let mut stream = gate.open(agent.call(&id.to_string(), "get_fault")).await;
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
async fn a_listening_stream_is_gone_on_with() {
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

/// A call is gone on with beside the one listening stream.
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

/// Older clients do not know events without a message (MCP 2025-11-25, transports).
#[tokio::test]
async fn older_revisions_are_not_primed() {
    let first = vec![
        sound::stream(),
        sound::chunk(PRIME),
        named("s-1", PROGRESS),
        sound::end(),
    ];
    let calls = server(first, |_, call| finishing(call));
    let script = move |seen: &Seen| match seen.method() {
        "initialize" => Some(sound::welcome("old", "2025-06-18")),
        "tools/list" => Some(sound::result(false, LIST)),
        "tools/call" | "GET" => calls(seen),
        _ => Some(sound::status(202, "text/plain", "")),
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let call = agent.call("\"a\"", "get_fault");
    let call = call.set("MCP-Protocol-Version", "2025-06-18");
    let events = rest_of(gate.open(call).await).await;
    let id = call_id(&tools);
    assert_eq!(
        events,
        [
            format!("id: {id}.s-1\nevent: message\ndata: {PROGRESS}"),
            format!("id: {id}.s-2\nevent: message\ndata: {DONE}"),
        ]
    );
    assert_eq!(
        tools.of("GET")[0].header("mcp-protocol-version"),
        Some("2025-06-18")
    );
    gate.stop().await;
}

/// Nothing of it exists in the modern era.
#[tokio::test]
async fn modern_streams_have_no_ids_and_end_where_they_end() {
    let first = vec![
        sound::stream(),
        sound::chunk(PRIME),
        named("s-1", PROGRESS),
        sound::end(),
    ];
    let (tools, gate) = before(server(first, |_, call| finishing(call)), "").await;
    let agent = Agent::modern("s");
    let call = agent
        .call("\"a\"", "get_fault")
        .with("Last-Event-ID", "1.s-0");
    let events = rest_of(gate.open(call).await).await;
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(events[0], format!("event: message\ndata: {PROGRESS}"));
    assert!(events[1].starts_with("event: message\n") && events[1].contains("no_answer"));
    assert_eq!(tools.of("tools/call")[0].header("last-event-id"), None);
    assert_eq!(tools.of("GET").len(), 0);
    let get = resuming(&agent, "1.s-0").set("MCP-Protocol-Version", "2026-07-28");
    assert_eq!(gate.send(get).await.status, 405);
    stop(gate).await;
}
