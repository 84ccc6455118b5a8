//! `subscriptions/listen`: one stream upstream for each of the client's, under the client's own id.

use serde_json::Value;
use tollgate::app::reload::Outcome;

use super::{Agent, SHORT, before, ends, stop};
use crate::support::{
    client::Exchange,
    gate::{Gate, Policy, eventually, write},
    sound as say,
    tools::{Latch, Seen, Step, Tools},
};

const LISTEN: &str = "subscriptions/listen";
const FILTER: &str =
    r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///a","x:b"]}"#;

/// A server that answers every subscription, and every GET, in this way.
fn listening(steps: Vec<Step>) -> impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static {
    move |seen: &Seen| {
        [LISTEN, "GET"]
            .contains(&seen.method())
            .then(|| steps.clone())
    }
}

/// A notification of the subscription `id`; `more` are members of its `params`, each after a comma.
fn note(method: &str, id: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id},"x":1.0}}{more}}}}}"#
    )
}

fn acknowledged(id: &str) -> String {
    let filter = r#","notifications":{"toolsListChanged":true}"#;
    note("subscriptions/acknowledged", id, filter)
}

/// How Tollgate ends a subscription itself.
fn ended(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
    )
}

/// An acknowledged subscription that says nothing more.
fn quiet(last: Step) -> Vec<Step> {
    vec![say::stream(), say::event(&acknowledged("$ID")), last]
}

async fn open(agent: &Agent, gate: &Gate, id: &str) -> Exchange {
    let stream = gate.open(agent.request(id, LISTEN, FILTER)).await;
    assert_eq!(stream.status(), 200);
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    stream
}

/// A subscription whose acknowledgement has come.
async fn listen(agent: &Agent, gate: &Gate, id: &str) -> Exchange {
    let mut stream = open(agent, gate, id).await;
    assert_eq!(stream.event().await, Some(acknowledged(id)));
    stream
}

#[tokio::test]
async fn only_what_names_the_subscription_is_relayed_under_the_clients_id() {
    let changed = |id| note("tools/list_changed", id, "");
    let updated = |id| note("resources/updated", id, r#", "uri" : "file:///a" "#);
    let others =
        |id| ["prompts", "resources"].map(|of| note(&format!("{of}/list_changed"), id, ""));
    let said = [
        changed("$ID"),
        updated("99"),
        acknowledged("99"),
        acknowledged("$ID"),
        changed("$ID"),
        changed("99"),
        changed("\"$ID\""),
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned(),
        note("progress", "$ID", r#","progressToken":1,"progress":1"#),
        note("message", "$ID", r#","level":"info","data":1"#),
        note("cancelled", "$ID", r#","requestId":99"#),
        note("tasks/status", "$ID", ""),
        r#"{"jsonrpc":"2.0","id":4,"method":"roots/list"}"#.to_owned(),
        acknowledged("$ID"),
        updated("$ID"),
        others("$ID").join("\n\ndata: "),
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"_meta":{"y":[1e2],"io.modelcontextprotocol/subscriptionId":$ID},"resultType":"complete"}}"#.to_owned(),
    ];
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let (tools, gate) = before(listening(say::events(&said)), "").await;
    let agent = Agent::modern("s");
    for id in ["7", r#""a\u0042c""#] {
        let mut stream = listen(&agent, &gate, id).await;
        assert_eq!(stream.event().await, Some(changed(id)));
        assert_eq!(stream.event().await, Some(updated(id)));
        for changed in others(id) {
            let event = stream.whole_event().await;
            assert_eq!(event, Some(format!("event: message\ndata: {changed}")));
        }
        let last = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"_meta":{{"y":[1e2],"io.modelcontextprotocol/subscriptionId":{id}}},"resultType":"complete"}}}}"#
        );
        assert_eq!(stream.event().await, Some(last));
        assert_eq!(stream.event().await, None);
        assert!(stream.complete);
    }
    let seen = &tools.of(LISTEN)[1];
    assert_eq!(seen.header("mcp-method"), Some(LISTEN));
    assert!(seen.text.contains(FILTER), "{}", seen.text);
    assert!(seen.json["id"].is_u64());
    let records = gate.stop().await;
    assert_eq!(ends(&records), ["request allowed"; 2]);
    let record = records.iter().find(|record| record["kind"] == "request");
    assert_eq!(record.unwrap()["method"], LISTEN);
    assert_eq!(record.unwrap()["target"]["port"], tools.address.port());
}

#[tokio::test]
async fn a_server_ends_it_in_one_way_or_another() {
    let result = |text: &str| format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{text}}}"#);
    let meta = |id| format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
    let error =
        |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"m"}}}}"#);
    let untold = |id| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete",{}}}}}"#,
            meta(id)
        )
    };
    let own = Some(ended("7"));
    for (last, seen, record) in [
        (
            note("cancelled", "$ID", r#","requestId":$ID"#),
            own.clone(),
            "allowed",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}"#
                .to_owned(),
            own.clone(),
            "allowed",
        ),
        (result("{}"), own.clone(), "allowed"),
        (
            result(&format!(r#"{{{}}}"#, meta("99"))),
            own.clone(),
            "allowed",
        ),
        (
            result(&format!(r#"{{{}}}"#, meta("$ID"))),
            Some(untold("7")),
            "allowed",
        ),
        (error("$ID"), Some(error("7")), "allowed"),
        (
            result(r#"{"resultType":"input_required"}"#),
            None,
            "failed upstream.malformed",
        ),
        (
            result("{}").replace("$ID", "99"),
            None,
            "failed upstream.wrong_id",
        ),
        ("{".to_owned(), None, "failed upstream.malformed"),
        (String::new(), None, "failed upstream.no_answer"),
    ] {
        let more = Latch::new();
        let mut steps = quiet(Step::Wait(more.clone()));
        if !last.is_empty() {
            steps.push(say::event(&last));
        }
        steps.push(say::end());
        let (_tools, gate) = before(listening(steps), "").await;
        let mut stream = listen(&Agent::modern("s"), &gate, "7").await;
        more.open();
        assert_eq!(stream.event().await, seen, "{last}");
        if seen.is_some() {
            assert_eq!(stream.event().await, None, "{last}");
        }
        assert!(stream.complete, "{last}");
        assert_eq!(stop(gate).await, [format!("request {record}")], "{last}");
    }
}

/// Of what ends it nothing escapes the bounds of any other answer.
#[tokio::test]
async fn what_ends_it_is_bounded_and_bears_no_mark() {
    let long = "x".repeat(20_000);
    let result = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"resultType":"complete","said":"{long}","_meta":{{"io.modelcontextprotocol/subscriptionId":$ID,"io.tollgate/cut":{{}}}}}}}}"#
    );
    let error = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"error":{{"code":-32603,"message":"{long}","data":"a\u202eb"}}}}"#
    );
    let page = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"http://evil.example/","message":"m"}]}}}"#;
    for last in [&*result, &*error, page] {
        let more = Latch::new();
        let wait = quiet(Step::Wait(more.clone()));
        let steps = [wait, vec![say::event(last), say::end()]].concat();
        let small = "[limits]\nresult_bytes = 8192\n";
        let (_tools, gate) = before(listening(steps), small).await;
        let mut stream = listen(&Agent::modern("s"), &gate, "7").await;
        more.open();
        let told = stream.event().await;
        if last == result {
            let told = told.unwrap();
            assert!(
                told.len() <= 8192 && !told.contains("io.tollgate"),
                "{told}"
            );
            assert!(told.contains(r#"subscriptionId":7"#), "{told}");
        } else if last == error {
            let told: Value = serde_json::from_str(&told.unwrap()).unwrap();
            let error = &told["error"];
            let said = error["message"].as_str().unwrap();
            assert!(said.len() <= 8192 && said.ends_with(" bytes; incomplete]"));
            assert_eq!(error["data"], r"a\u{202E}b");
        } else {
            assert_eq!(told, None);
        }
        stop(gate).await;
    }
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_relayed_if_it_is_an_error() {
    let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"m"}}"#;
    for (answer, status, code) in [
        (say::json(error), 200, -32601),
        (
            say::json(r#"{"jsonrpc":"2.0","id":$ID,"result":{}}"#),
            200,
            -32603,
        ),
        (say::status(500, "text/plain", "x"), 200, -32603),
    ] {
        let (_tools, gate) = before(listening(answer), "").await;
        let reply = gate
            .send(Agent::modern("s").request("7", LISTEN, FILTER))
            .await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.json()["error"]["code"], code);
        assert_eq!(reply.json()["id"], 7);
        stop(gate).await;
    }
}

#[tokio::test]
async fn neither_silence_nor_length_ends_it_but_an_event_without_end_does() {
    let (more, last) = (Latch::new(), Latch::new());
    let changed = note("tools/list_changed", "$ID", "");
    let event = format!("data: {changed}\n\n");
    let piece = format!("data: {}\n", "x".repeat(10_000));
    let mut steps = quiet(Step::Wait(more.clone()));
    steps.push(say::chunk(&event.repeat(2_000)));
    steps.push(Step::Wait(last.clone()));
    steps.extend((0..20).map(|_| say::chunk(&piece)));
    steps.push(Step::Hang);
    let limits = format!("{SHORT}response_bytes = 65536\n");
    let (_tools, gate) = before(listening(steps), &limits).await;
    let agent = Agent::modern("s");
    let mut stream = listen(&agent, &gate, "7").await;
    // Longer than a call may be silent.
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    more.open();
    for _ in 0..2_000 {
        assert_eq!(stream.event().await, Some(changed.replace("$ID", "7")));
    }
    last.open();
    assert_eq!(stream.event().await, None);
    assert_eq!(
        stop(gate).await,
        ["request failed upstream.event_too_large"]
    );
}

#[tokio::test]
async fn a_client_that_leaves_ends_it_upstream() {
    let closed = Latch::new();
    let (_tools, gate) = before(listening(quiet(Step::Closed(closed.clone()))), "").await;
    let stream = listen(&Agent::modern("s"), &gate, "7").await;
    drop(stream);
    closed.wait().await;
    assert_eq!(stop(gate).await, ["request allowed"]);
}

#[tokio::test]
async fn it_ends_in_order_when_another_policy_holds() {
    let closed = Latch::new();
    let (_tools, gate) = before(listening(quiet(Step::Closed(closed.clone()))), "").await;
    let agent = Agent::modern("s");
    let file = gate.folder().join("servers/s.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    for (id, title) in [("7", "a"), (r#""b""#, "b")] {
        let mut stream = listen(&agent, &gate, id).await;
        assert_eq!(gate.handle.reload(), Outcome::Unchanged { kept: vec![] });
        write(&file, &format!("title = \"{title}\"\n{text}"));
        assert!(matches!(gate.handle.reload(), Outcome::Changed { .. }));
        assert_eq!(stream.event().await, Some(ended(id)));
        assert_eq!(stream.event().await, None);
        assert!(stream.complete);
        closed.wait().await;
    }
    assert_eq!(stop(gate).await, ["request allowed"; 2]);
}

#[tokio::test]
async fn streams_end_with_the_key_that_opened_them() {
    let key = "tg_until_soon_1234";
    let expires = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(6);
    let expires = expires.strftime("%Y-%m-%dT%H:%M:%SZ");
    let who = format!("agent = \"a\"\nuser = \"ann\"\nexpires = {expires}");
    let tools = Tools::start(listening(quiet(Step::Hang))).await;
    let policy = Policy::keys(&[(key, &who)], "").server("s", tools.address, "", "");
    let gate = Gate::start(&policy);
    let modern = Agent::modern("s").with_key(key);
    let legacy = modern.clone().legacy(&gate).await;
    let mut subscribed = listen(&modern, &gate, "7").await;
    let mut stream = legacy.listen(&gate).await;
    assert_eq!(subscribed.event().await, Some(ended("7")));
    while stream.event().await.is_some() {}
    assert!(stream.complete);
    assert_eq!(gate.send(modern.call("1", "get_weather")).await.status, 401);
    gate.stop().await;
}

/// Streams of both eras count alike, and one that ends makes room.
#[tokio::test]
async fn a_caller_has_only_so_many_streams() {
    let (tools, gate) = before(listening(quiet(Step::Hang)), "").await;
    let [modern, legacy] = Agent::both("s", &gate).await;
    let other = Agent::modern("s").legacy(&gate).await;
    let mut streams = vec![legacy.listen(&gate).await];
    for id in 1..128 {
        streams.push(listen(&modern, &gate, &id.to_string()).await);
    }
    let seen = tools.seen().len();
    for ask in [modern.request("9", LISTEN, FILTER), other.bare("GET")] {
        let reply = gate.send(ask).await;
        assert_eq!(reply.status, 429);
        assert_eq!(reply.json()["error"]["data"]["code"], "mcp.stream_limit");
    }
    assert_eq!(tools.seen().len(), seen);
    modern.good(&gate).await;
    let open = tools.open();
    drop(streams.pop());
    eventually("the stream ends upstream", || tools.open() < open).await;
    streams.push(listen(&modern, &gate, "129").await);
    gate.stop().await;
}
