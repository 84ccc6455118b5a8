//! What a name server of others can make the forward proxy do: refuse, or connect to an address that was judged.

use std::time::Duration;

use hickory_proto::{op::ResponseCode, rr::RecordType};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};

use crate::support::{
    client::patiently,
    gate::{Gate, Policy},
    nameserver::{NameServer, Question, Reply},
    tunnels::Client,
};

/// Where `site.test` may lead, and where it may not.
const GRANTED: &str = "127.0.0.2";
const OTHER: &str = "127.0.0.3";

/// Between two looks whether an answer has been forgotten.
const PAUSE: Duration = Duration::from_millis(50);

const OPENED: &str = "200 Connection Established";
const BLOCKED: &str = "403 Forbidden (egress.address_blocked)";
const UNRESOLVED: &str = "502 Bad Gateway (egress.name_unresolved)";
const FAILED: &str = "502 Bad Gateway (egress.dns_failed)";

/// Listeners at both addresses, on one port, and a Tollgate that grants the first.
struct Scene {
    granted: TcpListener,
    other: TcpListener,
    port: u16,
    names: NameServer,
    gate: Gate,
}

impl Scene {
    async fn new(answer: impl Fn(&Question) -> Reply + Send + Sync + 'static) -> Self {
        let (granted, other, port) = listeners().await;
        let names = NameServer::start(answer).await;
        let policy = Policy::local("")
            .replacing("127.0.0.1:9", &names.address.to_string())
            .file(
                "egress.toml",
                format!(
                    "[[allow]]\nhost = \"site.test:{port}\"\ntls = \"opaque\"\n[[private]]\nhost = \"site.test\"\n\
                     port = {port}\naddresses = [\"{GRANTED}/32\"]\nfor = [\"proxy\"]\n"
                ),
            );
        let gate = Gate::start(&policy);
        Self {
            granted,
            other,
            port,
            names,
            gate,
        }
    }

    /// The status line of a CONNECT, without its version; and the connection that an opened tunnel has at its other end.
    async fn connect(&self) -> (String, Option<(Client, TcpStream)>) {
        let authority = format!("site.test:{}", self.port);
        let (client, answer) = Client::connect(&self.gate, &authority, "").await;
        let line = answer.lines().next().unwrap();
        let status = line.strip_prefix("HTTP/1.1 ").unwrap().to_owned();
        if status != OPENED {
            return (status, None);
        }
        let (target, _) = patiently(self.granted.accept()).await.unwrap();
        (status, Some((client, target)))
    }

    /// The status line of a plain request, without its version. Who listens where it may go answers 200 to everything.
    async fn get(&self) -> String {
        let mut client = Client::new(&self.gate).await;
        let host = format!("site.test:{}", self.port);
        let head = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        client.send(head).await;
        let answer = client.head().await;
        let line = answer.lines().next().unwrap();
        line.strip_prefix("HTTP/1.1 ").unwrap().to_owned()
    }

    /// Ends it, and makes sure that nobody went where nobody may.
    async fn end(self) -> Vec<serde_json::Value> {
        let records = self.gate.stop().await;
        for (listener, address) in [(self.granted, GRANTED), (self.other, OTHER)] {
            let accepted = listener.into_std().unwrap().accept();
            assert!(accepted.is_err(), "a connection to {address} too many");
        }
        records
    }
}

async fn listeners() -> (TcpListener, TcpListener, u16) {
    loop {
        let granted = TcpListener::bind((GRANTED, 0)).await.unwrap();
        let port = granted.local_addr().unwrap().port();
        if let Ok(other) = TcpListener::bind((OTHER, port)).await {
            return (granted, other, port);
        }
    }
}

/// The answers to A and AAAA.
fn families(v4: &[&str], v6: &[&str]) -> impl Fn(&Question) -> Reply + Send + Sync + 'static {
    let (v4, v6) = (Reply::of(v4), Reply::of(v6));
    move |question| match question.records {
        RecordType::A => v4.clone(),
        _ => v6.clone(),
    }
}

/// What a CONNECT comes to, and the questions that were asked for it: names, with their records.
async fn comes_to(
    answer: impl Fn(&Question) -> Reply + Send + Sync + 'static,
) -> (String, Vec<Question>) {
    let scene = Scene::new(answer).await;
    let (status, tunnel) = scene.connect().await;
    let seen = scene.names.seen();
    drop(tunnel);
    scene.end().await;
    (status, seen)
}

#[tokio::test]
async fn every_address_of_an_answer_is_judged() {
    for (v4, v6, expected) in [
        (&[GRANTED][..], &[][..], OPENED),
        (&[GRANTED, OTHER], &[], BLOCKED),
        (&[OTHER, GRANTED], &[], BLOCKED),
        (&[GRANTED], &["::1"], BLOCKED),
        (&[GRANTED], &["::ffff:127.0.0.3"], BLOCKED),
        (&[GRANTED, "169.254.169.254"], &[], BLOCKED),
        (&[GRANTED, "10.0.0.1"], &[], BLOCKED),
        (&["1.1.1.1", OTHER], &[], BLOCKED),
        (&["0.0.0.0"], &[], BLOCKED),
        (&[], &[], UNRESOLVED),
    ] {
        let (status, _) = comes_to(families(v4, v6)).await;
        assert_eq!(status, expected, "{v4:?} {v6:?}");
    }
}

#[tokio::test]
async fn plain_requests_are_judged_alike() {
    for (v4, v6, expected) in [
        (&[GRANTED, OTHER][..], &[][..], BLOCKED),
        (&[GRANTED], &["::1"], BLOCKED),
        (&[OTHER], &[], BLOCKED),
        (&[], &[], UNRESOLVED),
    ] {
        let scene = Scene::new(families(v4, v6)).await;
        assert_eq!(scene.get().await, expected, "{v4:?} {v6:?}");
        scene.end().await;
    }
}

#[tokio::test]
async fn aliases_are_followed_and_what_they_lead_to_is_judged() {
    let whole = |to: &str| Reply::of(&["site.test.>real.test.", &format!("real.test.={to}")]);
    for (to, expected) in [(GRANTED, OPENED), (OTHER, BLOCKED)] {
        let answer = whole(to);
        let (status, _) = comes_to(move |question| match question.records {
            RecordType::A => answer.clone(),
            _ => Reply::nothing(),
        })
        .await;
        assert_eq!(status, expected, "{to}");
        // The alias alone, so that its target is a question of its own.
        let (status, _) = comes_to(move |question| match (&*question.name, question.records) {
            ("site.test.", _) => Reply::of(&["site.test.>real.test."]),
            (_, RecordType::A) => Reply::of(&[to]),
            _ => Reply::nothing(),
        })
        .await;
        assert_eq!(status, expected, "{to}, asked for by itself");
    }
}

#[tokio::test]
async fn aliases_without_end_are_a_failure() {
    let (status, seen) = comes_to(|question| match &*question.name {
        "site.test." => Reply::of(&["site.test.>real.test.", "real.test.>site.test."]),
        _ => Reply::of(&["real.test.>site.test."]),
    })
    .await;
    assert_eq!(status, UNRESOLVED);
    assert!(seen.len() < 40, "{} questions", seen.len());

    let chain = |at: usize| format!("n{at}.test.>n{}.test.", at + 1);
    let (status, seen) = comes_to(move |question| match &*question.name {
        "site.test." => Reply::of(&["site.test.>n0.test."]),
        name => {
            let at = name.trim_start_matches('n').split('.').next().unwrap();
            Reply::of(&[&chain(at.parse().unwrap())])
        }
    })
    .await;
    assert_eq!(status, UNRESOLVED);
    assert!(seen.len() < 80, "{} questions", seen.len());
}

#[tokio::test]
async fn names_that_cannot_be_resolved_say_why() {
    for (code, expected) in [
        (ResponseCode::NXDomain, UNRESOLVED),
        (ResponseCode::ServFail, FAILED),
        (ResponseCode::Refused, FAILED),
    ] {
        let (status, _) = comes_to(move |_| Reply::Code(code)).await;
        assert_eq!(status, expected, "{code}");
    }
    let (status, _) = comes_to(|_| Reply::Silence).await;
    assert_eq!(status, "504 Gateway Timeout (egress.dns_timeout)");
}

#[tokio::test]
async fn a_truncated_answer_is_no_answer() {
    for (rest, expected) in [(&[GRANTED][..], OPENED), (&[GRANTED, OTHER], BLOCKED)] {
        let (status, seen) = comes_to(move |question| match (question.records, question.tcp) {
            (RecordType::A, false) => Reply::Truncated(vec![GRANTED.to_owned()]),
            (RecordType::A, true) => Reply::of(rest),
            _ => Reply::nothing(),
        })
        .await;
        assert_eq!(status, expected, "{rest:?}");
        let again = |asked: &Question| asked.tcp && asked.records == RecordType::A;
        assert!(seen.iter().any(again), "{seen:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_late_is_waited_for_where_there_is_no_other() {
    let (status, _) = comes_to(|question| match question.records {
        RecordType::A => Reply::of(&[GRANTED]).late(300),
        _ => Reply::nothing(),
    })
    .await;
    assert_eq!(status, OPENED);
    let (status, _) = comes_to(|question| match question.records {
        RecordType::A => Reply::nothing(),
        _ => Reply::of(&["::1"]).late(300),
    })
    .await;
    assert_eq!(status, BLOCKED);
}

#[tokio::test]
async fn hints_are_neither_asked_for_nor_followed() {
    let hint = format!("hint {OTHER}");
    let (status, seen) = comes_to(families(&[GRANTED, &hint], &[])).await;
    assert_eq!(status, OPENED);
    let other = |asked: &&Question| ![RecordType::A, RecordType::AAAA].contains(&asked.records);
    assert_eq!(seen.iter().find(other), None);

    let (status, _) = comes_to(families(&[&format!("hint {GRANTED}")], &[])).await;
    assert_eq!(status, UNRESOLVED);
}

/// Answers every request on one connection with 200, and keeps it.
async fn serve(mut stream: TcpStream) {
    let mut input = Vec::new();
    while stream.read_buf(&mut input).await.is_ok_and(|read| read > 0) {
        if input.ends_with(b"\r\n\r\n") {
            input.clear();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_kept_connection_ends_with_the_answer_that_led_to_it() {
    let scene = Scene::new(|question| match (question.records, question.earlier) {
        (RecordType::A, 0) => Reply::Records(vec![GRANTED.to_owned()], 0),
        (RecordType::A, _) => Reply::Records(vec![OTHER.to_owned()], 0),
        _ => Reply::nothing(),
    })
    .await;
    let mut kept = JoinSet::new();
    let (first, ()) = tokio::join!(scene.get(), async {
        let (stream, _) = patiently(scene.granted.accept()).await.unwrap();
        kept.spawn(serve(stream));
    });
    assert_eq!(first, "200 OK");
    // While the answer holds, the connection is used again: nobody accepts another.
    let last = loop {
        let status = scene.get().await;
        if status != "200 OK" {
            break status;
        }
        sleep(PAUSE).await;
    };
    assert_eq!(last, BLOCKED);
    scene.end().await;
    kept.join_all().await;
}

#[tokio::test]
async fn a_rebound_name_leads_nowhere_else() {
    let scene = Scene::new(|question| match (question.records, question.earlier) {
        (RecordType::A, 0) => Reply::Records(vec![GRANTED.to_owned()], 0),
        (RecordType::A, _) => Reply::Records(vec![OTHER.to_owned()], 0),
        _ => Reply::nothing(),
    })
    .await;
    let (status, tunnel) = scene.connect().await;
    assert_eq!(status, OPENED);
    // One question a family: nobody asks again between judging and connecting.
    assert_eq!(scene.names.seen().len(), 2);
    // A time to live of 0 is taken for a second, until which the first answer holds.
    let mut opened = vec![tunnel];
    let last = loop {
        let (status, tunnel) = scene.connect().await;
        if tunnel.is_none() {
            break status;
        }
        opened.push(tunnel);
        sleep(PAUSE).await;
    };
    assert_eq!(last, BLOCKED);

    let port = scene.port;
    drop(opened);
    let records = scene.end().await;
    let pinned: Vec<_> = records
        .iter()
        .filter(|record| record["kind"] == "egress" && record["phase"] == "outcome")
        .filter(|record| record["outcome"] == "allowed")
        .map(|record| record["target"].clone())
        .collect();
    assert!(!pinned.is_empty());
    for target in pinned {
        let expected = serde_json::json!({"host": "site.test", "port": port, "addresses": [GRANTED], "pinned": true});
        assert_eq!(target, expected);
    }
}
