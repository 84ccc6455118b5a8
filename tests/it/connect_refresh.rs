//! Tokens kept fresh over the real store, vault and egress: one request whoever asks, and no result that is lost.

mod crash;
mod held;
mod issuer;
mod once;
mod processes;
mod races;
mod secrets;
mod steps;
mod tamper;
mod time;
mod verdict;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwap;
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{runtime::Handle, sync::mpsc};
use tollgate::{
    address::{Grant, Host, Leg, Port},
    audit::{Journal, Options},
    clock::Clock,
    connect::{Callback, Challenge, Connections, Error, Needs, State, Terms},
    deadline::Deadline,
    egress::Egress,
    policy::{Auth, Endpoints, OAuth, Permit, PreRegistered, Resource},
    store::Store,
    telemetry::Metrics,
    vault::{Credential, Keyring},
};

use crate::{
    egress::{ample, no_roots},
    support::{dialer::TableResolver, permit::Maker},
};
use held::{Held, HeldDialer, HeldStore};
use issuer::{Issuer, Reuse};

/// The server, which nobody asks anything.
const SERVER: &str = "https://tools.example.com/mcp";
/// The wall time at which every test begins, in Unix seconds.
const BEGIN: u64 = 1_795_989_600;
/// Long after what was issued at the beginning has ended.
const LATER: u64 = 7200;
/// Longer than any lease lasts.
const LEASE: u64 = 31;

/// Wall time that a test sets, in seconds since the beginning.
#[derive(Default)]
struct Hand(AtomicU64);

impl Hand {
    fn set(&self, seconds: u64) {
        self.0.store(seconds, Ordering::Relaxed);
    }
}

impl Clock for Hand {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(BEGIN + self.0.load(Ordering::Relaxed))
    }
}

/// A gateway's shared folder, and an authorization server.
struct World {
    folder: TempDir,
    issuer: Issuer,
}

impl World {
    async fn new(reuse: Reuse) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            issuer: Issuer::start(reuse).await,
        }
    }

    /// The same, where `ann` has connected: her tokens are `at-1` and `rt-1`.
    async fn connected(reuse: Reuse) -> Self {
        let world = Self::new(reuse).await;
        let first = world.process("first", 0);
        first.connect(&world.permit()).await;
        assert_eq!(first.token(&world.permit()).await.unwrap(), "at-1");
        first.connections.drain().await;
        world
    }

    /// A process that begins so many seconds after the beginning. It knows of tokens what the database says.
    fn process(&self, name: &str, seconds: u64) -> Process {
        process(self.folder.path(), name, seconds)
    }

    fn permit(&self) -> Permit {
        permit(&self.issuer.address.to_string(), "ann", SERVER)
    }

    /// What a process of this name left. One that lives takes it up as soon as it begins.
    fn spooled(&self, name: &str) -> usize {
        spooled(&self.folder.path().join(name))
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("tollgate.db")
    }

    /// Somebody else's connection.
    fn sql(&self) -> Connection {
        Connection::open(self.database()).unwrap()
    }
}

fn spooled(own: &Path) -> usize {
    let files = std::fs::read_dir(own.join("spool"));
    files.map_or(0, Iterator::count)
}

/// A process over a shared folder.
struct Process {
    connections: Connections,
    clock: Arc<Hand>,
    journal: Journal,
    own: PathBuf,
}

fn process(folder: &Path, name: &str, seconds: u64) -> Process {
    process_held(folder, name, seconds, "nowhere")
}

/// One that stops for ever once it comes to `step`.
fn process_held(folder: &Path, name: &str, seconds: u64, step: &str) -> Process {
    let clock = Arc::<Hand>::default();
    clock.set(seconds);
    let metrics = Arc::<Metrics>::default();
    let own = folder.join(name);
    let journal = Journal::open(Options::new(own.join("audit")), clock.clone(), &metrics).unwrap();
    let keyring = Keyring::open(&folder.join("keyring")).unwrap();
    let database = folder.join("tollgate.db");
    let store = Store::open_by(&database, &keyring, clock.clone(), metrics.clone()).unwrap();
    let egress = Egress::new(
        TableResolver::of(&[]),
        Arc::new(HeldDialer(Held::new(step))),
        no_roots(),
        ample(),
        metrics.clone(),
    );
    let terms = Terms {
        public_url: "https://tollgate.example.com".into(),
        ..Terms::default()
    };
    let (made, _) = mpsc::channel(1);
    let connections = Connections::new(Needs {
        records: Arc::new(HeldStore(Held::new(step), store)),
        vault: keyring.vault(),
        egress,
        runtime: Handle::current(),
        journal: journal.clone(),
        metrics,
        clock: clock.clone(),
        terms: Arc::new(ArcSwap::from_pointee(terms)),
        spool: own.join("spool"),
        made,
    });
    Process {
        connections,
        clock,
        journal,
        own,
    }
}

/// A permit of the server at `url`, whose authorization server the operator has named.
fn permit(issuer: &str, user: &'static str, url: &str) -> Permit {
    let at = |path: &str| Arc::from(format!("http://{issuer}{path}"));
    let knobs = OAuth {
        client: Some(PreRegistered {
            id: "gateway".into(),
            secret: None,
        }),
        issuer: Some(at("")),
        endpoints: Some(Endpoints {
            authorization: at("/authorize"),
            token: at("/token"),
            revocation: Some(at("/revoke")),
            registration: None,
        }),
        resource: Resource::Omit,
        scopes: Some(vec!["tools".into()]),
        revoke: true,
        allow_http_loopback: true,
        ..OAuth::default()
    };
    let mut maker = Maker {
        auth: Auth::OAuth(Box::new(knobs)),
        user,
        ..Maker::new(url)
    };
    maker.rules.grants.push(Grant {
        host: Host::Ip([127, 0, 0, 1].into()),
        port: Port::Any,
        addresses: Vec::new(),
        address: None,
        legs: vec![Leg::OAuth("demo".into())],
        origin: "egress.toml:1: [[private]]".into(),
    });
    maker.permit()
}

impl Process {
    /// Everything that a person does.
    async fn connect(&self, permit: &Permit) {
        let seen = self.connections.preview(permit, soon()).await.unwrap();
        let started = self
            .connections
            .start(permit, None, &seen.confirmation, soon())
            .await;
        let started = started.unwrap();
        let url = url::Url::parse(&started.authorize_url).unwrap();
        let state = url.query_pairs().find(|(name, _)| name == "state").unwrap();
        let query = [
            ("code".to_owned(), "the-code".to_owned()),
            ("state".to_owned(), state.1.into_owned()),
        ];
        let callback = Callback {
            query: &query,
            cookies: &[(started.cookie, started.cookie_value)],
            owner: permit.owner(),
        };
        let judge = |_: &str| Some(permit.clone());
        self.connections
            .finish(callback, judge, soon())
            .await
            .unwrap();
    }

    /// The token that is sent now.
    async fn token(&self, permit: &Permit) -> Result<String, Error> {
        self.token_before(permit, soon()).await
    }

    async fn token_before(&self, permit: &Permit, deadline: Deadline) -> Result<String, Error> {
        let credential = self.connections.credential(permit, deadline).await?;
        Ok(bare(&credential.unwrap()))
    }

    /// What is sent after the server has refused the token `used`.
    async fn after_refusal(&self, permit: &Permit, used: &str) -> Result<String, Error> {
        let used = Credential::bearer(used.as_bytes()).unwrap();
        let challenge = Challenge::default();
        let other = self
            .connections
            .refused(permit, Some(&used), &challenge, soon());
        other.await.map(|credential| bare(&credential))
    }

    /// What the caller is told after the server has refused `used`, too, which came in the place of another.
    async fn refused_again(&self, permit: &Permit, used: &str) -> String {
        let used = Credential::bearer(used.as_bytes()).unwrap();
        told(&self.connections.refused_again(permit, &used).await)
    }

    /// How the connection stands, as people are told.
    async fn state(&self, permit: &Permit) -> State {
        self.connections.state(permit).await.unwrap().state
    }

    /// Files that wait for the database.
    fn spooled(&self) -> usize {
        spooled(&self.own)
    }

    /// `kind method outcome code` of every record of connections so far.
    async fn records(&self) -> Vec<String> {
        self.journal.close().await.unwrap();
        let files = std::fs::read_dir(self.own.join("audit")).unwrap();
        let mut records = Vec::new();
        for path in files.map(|file| file.unwrap().path()) {
            if path.extension().is_some_and(|end| end == "jsonl") {
                let text = std::fs::read_to_string(path).unwrap();
                assert!(
                    !text.contains("at-") && !text.contains("rt-"),
                    "a token is on record"
                );
                records.extend(text.lines().filter_map(summary));
            }
        }
        records
    }
}

/// How an error tells a caller what to do: its code, and the reason of a connection that has ended.
fn told(error: &Error) -> String {
    match error {
        Error::Reconnect { reason, .. } | Error::Shared { reason, .. } => {
            format!("{} {reason}", error.code().as_str())
        }
        _ => error.code().as_str().to_owned(),
    }
}

fn bare(credential: &Credential) -> String {
    let value = credential.value().to_str().unwrap();
    value.strip_prefix("Bearer ").unwrap().to_owned()
}

fn summary(line: &str) -> Option<String> {
    let record: Value = serde_json::from_str(line).unwrap();
    let text = |key: &str| record[key].as_str().unwrap_or("-");
    let words = ["kind", "method", "outcome", "code"].map(text);
    ["connect", "credential"]
        .contains(&words[0])
        .then(|| words.join(" "))
}

/// The end of whoever does not wait for another process.
fn at_once() -> Deadline {
    Deadline::after(Duration::from_millis(300))
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(30))
}
