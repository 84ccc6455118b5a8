//! Streams on which nothing is said: kept alive, and cut by none of the deadlines that a request has. The time of these
//! tests is moved on, not waited for.

use std::{sync::Arc, time::Duration};

use tokio::time::{self, Instant};
use tollgate::policy::{Pattern, ReadOnly, Snapshot};

use crate::support::{
    agent::Agent,
    client::Exchange,
    permit::Maker,
    pipeline::{Door, Pipeline},
    sound as say,
    tools::{Seen, Step, Tools},
};

const FILTER: &str = r#""notifications":{"toolsListChanged":true}"#;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}}"#;
const ACKNOWLEDGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$ID},"notifications":{}}}"#;
const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;

/// A policy whose server may be silent for two minutes in a call, the longest that a file can allow.
pub(super) fn policy(tools: &Tools) -> Snapshot {
    let mut maker = Maker::new(&format!("http://{}/mcp", tools.address)).granting("127.0.0.1");
    maker.limits.call = Duration::from_secs(120);
    maker.limits.idle = Duration::from_secs(120);
    let mut policy = maker.snapshot();
    let server = Arc::make_mut(&mut policy.servers)
        .get_mut("demo")
        .and_then(Arc::get_mut);
    server.unwrap().read_only = ReadOnly::Patterns(vec![Pattern::new("get_*")]);
    policy
}

/// A client in a session.
pub(super) async fn session(door: Door) -> Agent {
    let agent = Agent::modern("demo");
    let welcome = door.open(agent.initialize("2025-11-25")).await;
    let session = welcome.header("mcp-session-id").map(str::to_owned);
    assert!(session.is_some());
    Agent { session, ..agent }
}

/// Reads up to an event in which `last` stands. Nothing in between takes a stream for dead in which something is said
/// every half a minute.
async fn kept_alive(stream: &mut Exchange, last: &str) -> usize {
    for comments in 0.. {
        let begun = Instant::now();
        let said = stream.event_or_comment().await.expect("the stream goes on");
        assert!(begun.elapsed() <= Duration::from_secs(30));
        if said != ":" {
            assert!(said.contains(last), "{said}");
            return comments;
        }
    }
    0
}

/// Far beyond what a client may take to read (30 s), a connection may idle (75 s), and a call may last (120 s).
#[tokio::test]
async fn listening_streams_outlast_every_deadline() {
    const SILENCE: Duration = Duration::from_secs(30 * 60 + 5);
    let script = |seen: &Seen| {
        let first = match seen.method() {
            "GET" => CHANGED.replace("$ID", "1"),
            "subscriptions/listen" => ACKNOWLEDGED.to_owned(),
            _ => return None,
        };
        let events = [
            say::event(&first),
            Step::Silence(SILENCE),
            say::event(CHANGED),
        ];
        Some([vec![say::stream()], events.to_vec(), vec![Step::Hang]].concat())
    };
    let tools = Tools::start(script).await;
    let pipeline = Pipeline::new();
    let door = pipeline.listen(policy(&tools));
    let session = session(door).await;
    for ask in [
        session.bare("GET"),
        Agent::modern("demo").request("7", "subscriptions/listen", FILTER),
    ] {
        let mut stream = door.open(ask).await;
        assert!(stream.event().await.is_some());
        let asked = tools.seen().len();
        time::pause();
        let comments = kept_alive(&mut stream, "list_changed").await;
        time::resume();
        assert!(comments >= 60, "{comments}");
        // Servers are sent nothing that no client asked for: no ping finds out whether they live.
        assert_eq!(tools.seen().len(), asked);
    }
}

/// A long call is as quiet towards its client as its server is, but for the comments.
#[tokio::test]
async fn a_silent_call_is_kept_alive_to_its_answer() {
    let script = |seen: &Seen| {
        let answer = say::message(seen.modern(), &say::text("done"));
        (seen.tool() == "get_fault").then(|| {
            vec![
                say::stream(),
                say::event(PROGRESS),
                Step::Silence(Duration::from_secs(100)),
                say::event(&answer),
                say::end(),
            ]
        })
    };
    let tools = Tools::start(script).await;
    let pipeline = Pipeline::new();
    let door = pipeline.listen(policy(&tools));
    for agent in [session(door).await, Agent::modern("demo")] {
        let mut stream = door.open(agent.call("1", "get_fault")).await;
        assert_eq!(stream.event().await.as_deref(), Some(PROGRESS));
        time::pause();
        let comments = kept_alive(&mut stream, "done").await;
        time::resume();
        assert!(comments >= 4, "{comments}");
        assert_eq!(stream.event().await, None);
        assert!(stream.complete);
    }
}
