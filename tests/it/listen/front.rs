//! A real agents listener on loopback in front of a stand-in for the gateway, and a client that writes raw bytes.

use std::{
    collections::HashMap,
    convert::Infallible,
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    sync::Notify,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tollgate::{
    audit::{Journal, Options},
    clock::Clock,
    config::Endpoint,
    gateway::Ask,
    identity::Identity,
    listen::{Agents, Bound, Door, Limits, Lobby, Origins, Recorder, Terms, Tls, accept},
    memory::Memory,
    policy::{Key, Snapshot},
    subject::{Scopes, Subject},
    telemetry::Metrics,
};

/// The wall time of these tests.
const NOW: u64 = 1_795_989_600;

/// A head that a listener with keys lets in, up to its body.
pub(crate) const HEAD: &str =
    "POST /mcp/demo HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer tg_alice\r\n";

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(NOW)
    }
}

/// Stands in for the gateway. The server's name says how it answers: `wait` once it is told to, `endless` until the
/// drain, anything else at once.
#[derive(Clone, Default)]
pub(crate) struct Stand {
    pub(crate) entered: Arc<Notify>,
    pub(crate) go_on: Arc<Notify>,
    drain: CancellationToken,
}

impl Door for Stand {
    type Body = UnsyncBoxBody<Bytes, Infallible>;

    async fn serve(&self, ask: &Ask) -> Response<Self::Body> {
        self.entered.notify_one();
        if &*ask.server == "wait" {
            self.go_on.notified().await;
        }
        if &*ask.server == "endless" {
            let piece = Bytes::from(vec![b'x'; 64 * 1024]);
            let stream = futures_util::stream::repeat(piece)
                .map(|piece| Ok::<_, Infallible>(Frame::data(piece)))
                .take_until(self.drain.clone().cancelled_owned());
            return Response::new(StreamBody::new(stream).boxed_unsync());
        }
        let text = json!({
            "user": &*ask.caller.user,
            "generation": ask.policy.generation,
            "bytes": ask.body.len(),
        });
        Response::new(Full::from(text.to_string()).boxed_unsync())
    }
}

/// How a front is built; the defaults are short where time must pass.
pub(crate) struct Plan {
    pub(crate) endpoint: Endpoint,
    pub(crate) identity: Identity,
    pub(crate) tls: Option<Tls>,
    pub(crate) limits: Limits,
    pub(crate) body: Duration,
    pub(crate) request_bytes: usize,
    pub(crate) bodies: Memory,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            endpoint: Endpoint::Tcp("127.0.0.1:0".parse().expect("an address")),
            identity: Identity::keys(Arc::new(Fixed)),
            tls: None,
            limits: Limits::default(),
            body: Limits::BODY,
            request_bytes: 1024,
            bodies: Memory::new(Limits::BODIES),
        }
    }
}

/// A listener that runs.
pub(crate) struct Front {
    pub(crate) address: Endpoint,
    pub(crate) stand: Stand,
    pub(crate) drain: CancellationToken,
    terms: Arc<ArcSwap<Terms>>,
    journal: Journal,
    metrics: Arc<Metrics>,
    folder: TempDir,
    pub(crate) task: JoinHandle<()>,
}

impl Front {
    pub(crate) fn start() -> Self {
        Self::with(Plan::default())
    }

    pub(crate) fn with(plan: Plan) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let metrics = Arc::new(Metrics::new());
        let clock: Arc<dyn Clock> = Arc::new(Fixed);
        let options = Options::new(folder.path().join("audit"));
        let journal = Journal::open(options, clock.clone(), &metrics).expect("a journal");
        let terms = Arc::new(ArcSwap::from_pointee(terms(
            policy(1, &["tg_alice"]),
            plan.body,
            plan.request_bytes,
        )));
        let drain = CancellationToken::new();
        let stand = Stand {
            drain: drain.clone(),
            ..Stand::default()
        };
        let recorder = Recorder::new(journal.clone(), clock, metrics.clone());
        let agents = Agents::new(
            stand.clone(),
            plan.identity,
            terms.clone(),
            recorder,
            plan.bodies,
        );
        let lobby = Lobby::new(plan.limits, plan.tls, metrics.clone(), drain.clone());
        let mut bound = Bound::new(&plan.endpoint, 1).expect("a free address");
        let socket = bound.sockets.pop().expect("one socket");
        let task =
            tokio::spawn(async move { accept(socket, lobby, agents).await.expect("accepting") });
        Self {
            address: bound.address,
            stand,
            drain,
            terms,
            journal,
            metrics,
            folder,
            task,
        }
    }

    pub(crate) fn swap(&self, policy: Snapshot) {
        self.terms
            .store(Arc::new(terms(policy, Limits::BODY, 1024)));
    }

    pub(crate) fn metrics(&self) -> String {
        self.metrics.render()
    }

    /// Returns once no connection is open.
    pub(crate) async fn quiet(&self) {
        while !self.metrics().contains("tollgate_listen_connections 0\n") {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn connect(&self) -> Client<Box<dyn Stream>> {
        Client(match &self.address {
            Endpoint::Tcp(address) => Box::new(dial(*address).await),
            Endpoint::Unix(path) => Box::new(unix(path).await),
        })
    }

    /// Sends `request` on a connection of its own and reads to its end.
    pub(crate) async fn exchange(&self, request: &str) -> String {
        let mut client = self.connect().await;
        client.send(request).await;
        client.rest().await
    }

    /// Ends the front and gives its records, oldest first.
    pub(crate) async fn records(self) -> Vec<Value> {
        self.drain.cancel();
        self.task.await.expect("the listener ends");
        self.journal.close().await.expect("records are kept");
        let mut files: Vec<PathBuf> = fs::read_dir(self.folder.path().join("audit"))
            .expect("the audit folder")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
            .collect();
        files.sort();
        let texts = files
            .iter()
            .map(|file| fs::read_to_string(file).expect("a record file"));
        let parse = |line: &str| serde_json::from_str(line).expect("a record");
        texts
            .flat_map(|text| text.lines().map(parse).collect::<Vec<_>>())
            .collect()
    }

    /// Ends the front; the code of its only record.
    pub(crate) async fn only_record(self) -> Value {
        let mut records = self.records().await;
        assert_eq!(records.len(), 1, "{records:?}");
        records.remove(0)
    }
}

fn terms(policy: Snapshot, body: Duration, request_bytes: usize) -> Terms {
    Terms {
        policy: Arc::new(policy),
        origins: Origins::new(None, vec!["https://app.example.com".into()], false),
        request_bytes,
        body,
    }
}

/// A policy that knows these keys, each for the user of its name. `tg_old` has expired.
pub(crate) fn policy(generation: u64, keys: &[&str]) -> Snapshot {
    let key = |token: &str| {
        let subject = Subject {
            tenant: "default".into(),
            agent: "test".into(),
            user: token.trim_start_matches("tg_").into(),
            groups: Arc::new([]),
            scopes: Scopes::CALL,
            conversation: None,
            turn: None,
            acting: None,
            evidence: "key:test".into(),
        };
        let key = Key {
            subject: Arc::new(subject),
            may_act_for: Vec::new(),
            may_assert_groups: false,
            expires: (token == "tg_old").then_some(UNIX_EPOCH),
        };
        (Sha256::digest(token).into(), Arc::new(key))
    };
    Snapshot {
        generation,
        keys: HashMap::from_iter(keys.iter().map(|token| key(token))),
        ..Snapshot::default()
    }
}

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A client that says what it is told to.
pub(crate) struct Client<S>(pub(crate) S);

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) async fn send(&mut self, text: &str) {
        self.0
            .write_all(text.as_bytes())
            .await
            .expect("the server reads");
    }

    /// One answer with a `content-length`.
    pub(crate) async fn answer(&mut self) -> String {
        let mut text = self.head().await;
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().expect("a number"));
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.expect("a body");
        text.push_str(&String::from_utf8(body).expect("text"));
        text
    }

    /// A head, with the empty line after it.
    pub(crate) async fn head(&mut self) -> String {
        let mut text = Vec::new();
        while !text.ends_with(b"\r\n\r\n") {
            text.push(self.0.read_u8().await.expect("a head"));
        }
        String::from_utf8(text).expect("text")
    }

    /// Everything up to the end of the connection.
    pub(crate) async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        // A reset after the answer is an end as well.
        let _ = self.0.read_to_end(&mut bytes).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[expect(clippy::disallowed_methods, reason = "the client of a test")]
pub(crate) async fn dial(address: std::net::SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.expect("a listener")
}

async fn unix(path: &std::path::Path) -> UnixStream {
    UnixStream::connect(path).await.expect("a listener")
}
