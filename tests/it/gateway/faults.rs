//! What tool servers get wrong: a clear answer, a record, and the next call is fine.

use std::{
    io::Write as _,
    sync::{Arc, Mutex},
};

use super::{SHORT, before, stop};
use crate::support::{
    agent::Agent,
    gate::{Gate, Policy, ends, eventually},
    sound,
    tools::{Seen, Step, Tools},
};

/// A server whose `get_fault` does what stands in the cell.
fn faulty(
    cell: &Arc<Mutex<Vec<Step>>>,
) -> impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static {
    let cell = cell.clone();
    move |seen: &Seen| (seen.tool() == "get_fault").then(|| cell.lock().unwrap().clone())
}

/// Has each fault happen to a client of each era.
async fn suffer(tables: &str, faults: Vec<(&str, Vec<Step>, &str)>) {
    let cell = Arc::<Mutex<Vec<Step>>>::default();
    let (tools, gate) = before(faulty(&cell), tables).await;
    let agents = Agent::both("s", &gate).await;
    let mut expected = Vec::new();
    for (what, steps, code) in faults {
        *cell.lock().unwrap() = steps;
        for agent in &agents {
            let before = tools.of("tools/call").len();
            let reply = gate.send(agent.call("7", "get_fault")).await;
            assert_eq!(agent.refusal(&reply), code, "{what}: {}", reply.body);
            assert_eq!(reply.json()["id"], 7);
            assert_eq!(
                tools.of("tools/call").len(),
                before + 1,
                "{what}: sent once"
            );
            agent.good(&gate).await;
            expected.extend([format!("call failed {code}"), "call allowed".to_owned()]);
        }
    }
    assert_eq!(stop(gate).await[2..], expected);
}

fn say(text: &str) -> Step {
    Step::Say(text.as_bytes().to_vec())
}

const PART: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jso";

#[tokio::test]
async fn servers_that_hang() {
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
    suffer(
        SHORT,
        vec![
            ("no answer", vec![Step::Hang], "egress.first_byte_timeout"),
            (
                "half a head",
                vec![say("HTTP/1.1 200 OK\r\nContent-"), Step::Hang],
                "egress.first_byte_timeout",
            ),
            (
                "half a body",
                vec![say(PART), Step::Hang],
                "egress.idle_timeout",
            ),
            (
                "a silent stream",
                vec![sound::stream(), Step::Hang],
                "egress.idle_timeout",
            ),
            (
                "an idle stream",
                vec![sound::stream(), sound::event(progress), Step::Hang],
                "egress.idle_timeout",
            ),
            (
                "half an event",
                vec![sound::stream(), sound::chunk("data: {"), Step::Hang],
                "egress.idle_timeout",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn calls_that_take_too_long() {
    suffer(
        "[limits]\ntimeout = \"1s\"\n",
        vec![
            ("no answer", vec![Step::Hang], "egress.call_timeout"),
            (
                "half a body",
                vec![say(PART), Step::Hang],
                "egress.call_timeout",
            ),
            (
                "a stream",
                vec![sound::stream(), Step::Hang],
                "egress.call_timeout",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn connections_that_break() {
    suffer(
        "",
        vec![
            ("reset at once", vec![Step::Reset], "egress.connection_lost"),
            (
                "closed at once",
                vec![Step::Close],
                "egress.connection_lost",
            ),
            (
                "closed in the head",
                vec![say("HTTP/1.1 200 OK\r\nCon"), Step::Close],
                "egress.connection_lost",
            ),
            (
                "reset in the body",
                vec![say(PART), Step::Reset],
                "egress.connection_lost",
            ),
            (
                "closed in the body",
                vec![say(PART), Step::Close],
                "egress.connection_lost",
            ),
            (
                "closed in a chunk",
                vec![sound::stream(), say("ff\r\ndata: {"), Step::Close],
                "egress.connection_lost",
            ),
            (
                "reset in a stream",
                vec![
                    sound::stream(),
                    sound::event("{\"jsonrpc\":\"2.0\",\"method\":\"x\"}"),
                    Step::Reset,
                ],
                "egress.connection_lost",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn answers_that_are_no_mcp() {
    let redirect = |status: u16| {
        vec![say(&format!(
            "HTTP/1.1 {status} Elsewhere\r\nLocation: http://127.0.0.1:1/mcp?secret=1\r\nContent-Length: 0\r\n\r\n"
        ))]
    };
    let long = "x".repeat(70_000);
    suffer(
        "",
        vec![
            ("302", redirect(302), "egress.redirect_refused"),
            ("307", redirect(307), "egress.redirect_refused"),
            (
                "HTML",
                sound::status(200, "text/html", "<html>"),
                "upstream.content_type",
            ),
            (
                "no type",
                vec![say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")],
                "upstream.content_type",
            ),
            (
                "500",
                sound::status(500, "text/plain", ""),
                "upstream.status",
            ),
            (
                "500 of JSON",
                sound::status(500, "application/json", "{\"secret\":1}"),
                "upstream.status",
            ),
            (
                "429",
                sound::status(429, "text/html", "slow"),
                "upstream.status",
            ),
            (
                "401",
                sound::status(401, "application/json", ""),
                "upstream.unauthorized",
            ),
            (
                "403",
                sound::status(403, "text/plain", "no"),
                "upstream.unauthorized",
            ),
            (
                "202",
                sound::status(202, "text/plain", ""),
                "upstream.no_answer",
            ),
            (
                "101",
                vec![say(
                    "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
                )],
                "egress.response_head_invalid",
            ),
            (
                "no HTTP",
                vec![say("hello\r\n\r\n"), Step::Hang],
                "egress.response_head_invalid",
            ),
            (
                "a long head",
                vec![say(&format!("HTTP/1.1 200 OK\r\nX: {long}\r\n\r\n"))],
                "egress.response_head_invalid",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn messages_that_are_no_answer() {
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}"#;
    let with_id = |id: &str| sound::json(&answer.replace("$ID", id));
    let malformed = "upstream.malformed";
    let wrong = "upstream.wrong_id";
    let deep = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    suffer(
        "",
        vec![
            ("another id", with_id("999999"), wrong),
            ("the id as a string", with_id("\"$ID\""), wrong),
            ("a null id", with_id("null"), malformed),
            ("a fraction", with_id("$ID.0"), malformed),
            ("another id in a stream", sound::events(&[&answer.replace("$ID", "999999")]), wrong),
            ("garbage after it", sound::json(&format!("{answer} x")), malformed),
            ("two in one body", sound::json(&format!("{answer}{answer}")), malformed),
            ("two in one write", vec![sound::stream(), sound::chunk(&format!("data: {answer}\n\ndata: {answer}\n\n")), sound::end()], "upstream.extra_answer"),
            ("a stream without one", sound::events(&[]), "upstream.no_answer"),
            ("a stream of others", sound::events(&[r#"{"jsonrpc":"2.0","method":"x"}"#]), "upstream.no_answer"),
            ("garbage in a stream", sound::events(&["hello"]), malformed),
            ("a batch", sound::json(&format!("[{answer}]")), malformed),
            ("neither result nor error", sound::json(r#"{"jsonrpc":"2.0","id":$ID}"#), malformed),
            ("both", sound::json(r#"{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":""}}"#), malformed),
            ("a request", sound::json(r#"{"jsonrpc":"2.0","id":$ID,"method":"ping"}"#), malformed),
            ("too deep", sound::json(&answer.replace("[]", &deep)), malformed),
            ("cut", sound::json(&answer[..40]), malformed),
            ("empty", sound::json(" "), malformed),
            ("not UTF-8", vec![Step::Say(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n\"\xff\"".to_vec())], malformed),
        ],
    )
    .await;
}

fn packed(bytes: &[u8]) -> Vec<Step> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        bytes.len()
    );
    vec![Step::Say([head.as_bytes(), bytes].concat())]
}

#[tokio::test]
async fn answers_without_measure() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&vec![b' '; 16 << 20]).unwrap();
    let bomb = gzip.finish().unwrap();
    let piece = "x".repeat(10_000);
    let endless = |first: Step, text: &str| {
        let mut steps = vec![first];
        steps.extend((0..20).map(|_| sound::chunk(text)));
        steps.push(Step::Hang);
        steps
    };
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    suffer(
        "[limits]\nresponse_bytes = 65536\n",
        vec![
            (
                "an endless body",
                endless(say(head), &piece),
                "egress.response_too_large",
            ),
            (
                "an announced one",
                vec![say(&PART.replace("100", "99999999")), Step::Hang],
                "egress.response_too_large",
            ),
            (
                "an endless event",
                endless(sound::stream(), &format!("data: {piece}\n")),
                "egress.response_too_large",
            ),
            (
                "an endless line",
                endless(sound::stream(), &piece),
                "egress.response_too_large",
            ),
            ("a bomb", packed(&bomb), "egress.response_too_large"),
            ("no gzip", packed(b"hello"), "egress.response_encoding"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_server_that_refuses_connections() {
    let gone = Tools::start(|_| None).await;
    let sound = Tools::start(|_| None).await;
    let policy = Policy::local("")
        .server("gone", gone.address, "era = \"modern\"", SHORT)
        .server("s", sound.address, "", "");
    drop(gone);
    let gate = Gate::start(&policy);
    let agent = Agent::modern("gone");
    eventually("the listener is gone", || {
        std::net::TcpListener::bind(("127.0.0.1", 0)).is_ok()
    })
    .await;
    let reply = gate.send(agent.call("1", "get_weather")).await;
    assert_eq!(agent.refusal(&reply), "egress.connect_failed");
    let reply = gate.send(agent.initialize("2025-11-25")).await;
    assert_eq!(
        (reply.status, &reply.json()["error"]["code"]),
        (400, &(-32022).into())
    );
    let ended = stop(gate).await;
    assert_eq!(
        ended,
        [
            "call failed egress.connect_failed",
            "request failed upstream.era"
        ]
    );
}

/// Which kind of error it is, modern clients read from two statuses; any other would be taken for our own.
#[tokio::test]
async fn errors_with_a_status_are_the_servers_own() {
    const ERROR: &str = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}}"#;
    let cell = Arc::<Mutex<Vec<Step>>>::default();
    let (_tools, gate) = before(faulty(&cell), "").await;
    for agent in Agent::both("s", &gate).await {
        for (status, seen) in [(400, 400), (409, 200), (500, 200)] {
            *cell.lock().unwrap() = vec![
                say(&format!(
                    "HTTP/1.1 {status} S\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                )),
                sound::chunk(ERROR),
                sound::end(),
            ];
            let reply = gate.send(agent.call("5", "get_fault")).await;
            let seen = if agent.is_modern() { seen } else { 200 };
            assert_eq!(
                (reply.status, reply.body),
                (seen, ERROR.replace("$ID", "5"))
            );
        }
        // What a server could not read it answers with a null id.
        *cell.lock().unwrap() = sound::json(&ERROR.replace("$ID", "null"));
        let reply = gate.send(agent.call("5", "get_fault")).await;
        assert_eq!(reply.body, ERROR.replace("$ID", "5"));
    }
    let ended = ends(&gate.stop().await);
    assert_eq!(ended[2..], ["call allowed"; 8]);
}
