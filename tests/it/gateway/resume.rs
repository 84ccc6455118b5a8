//! Streams of sessions that end before their answer: Tollgate resumes the server's, and clients Tollgate's.

mod clients;

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use super::{before, stop};
use crate::support::{
    agent::Agent,
    client::Exchange,
    gate::eventually,
    sound,
    tools::{LIST, Seen, Step, Tools},
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
const TOLD: &str = r#"{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"done"}],"_meta":{"io.tollgate/untrusted":{"server":"s"}}}}"#;

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
            format!("id: {id}.s-2\nevent: message\ndata: {TOLD}"),
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
async fn a_connection_that_breaks_is_resumed() {
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

/// Answers that are looked at whole are resumed as well.
#[tokio::test]
async fn a_list_is_resumed() {
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
    // The first whole list, which Tollgate reads itself, and then the client's own.
    assert_eq!(places(&tools), ["s-0"; 2]);
    gate.stop().await;
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

#[tokio::test]
async fn a_return_ends_with_its_call() {
    let script = server(closing(), |_, _| vec![Step::Hang]);
    let (tools, gate) = before(script, "[limits]\ntimeout = \"1s\"\n").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let reply = gate.send(agent.call("1", "get_fault")).await;
    assert_eq!(agent.refusal(&reply), "egress.call_timeout");
    assert_eq!(places(&tools), ["s-0"]);
    let told = || tools.of("notifications/cancelled").len() == 1;
    eventually("the server is told", told).await;
    stop(gate).await;
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
            format!("id: {id}.s-2\nevent: message\ndata: {TOLD}"),
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
    let get = agent
        .bare("GET")
        .with("Last-Event-ID", "1.s-0")
        .set("MCP-Protocol-Version", "2026-07-28");
    assert_eq!(gate.send(get).await.status, 405);
    stop(gate).await;
}
