//! The connect flow over the real store, vault and egress, with a provider that answers as the test says.

mod answers;
mod clients;
mod ends;
mod files;
mod issuers;
mod mix_up;
mod process;
mod provided;
mod step_up;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwap;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{runtime::Handle, sync::mpsc};
use tollgate::{
    address::{Grant, Host, Leg, Port},
    audit::{Journal, Options},
    clock::Clock,
    connect::{Connections, Needs, Preview, State, Terms},
    deadline::Deadline,
    egress::Egress,
    policy::{Auth, OAuth, Permit, Server, decide},
    store::Store,
    telemetry::Metrics,
    vault::Keyring,
};

use crate::{
    egress::{ample, no_roots},
    support::{
        dialer::{Behaviour, RecordingDialer, TableResolver},
        permit::{Maker, subject},
        provider::Provider,
    },
};
use process::Process;
use provided::{answers, metadata, registration, resource, tokens, usual};

/// The server. Every address leads to the same socket; what is asked there is told apart by its host.
const SERVER: &str = "http://127.0.0.1:9000/mcp";
const RESOURCE: &str = "http://127.0.0.1:9000/.well-known/oauth-protected-resource/mcp";
/// Its authorization server.
const ISSUER: &str = "http://127.0.0.2:9000";
/// Another one.
const OTHER: &str = "http://127.0.0.3:9000";
const CALLBACK: &str = "https://tollgate.example.com/oauth/callback";
/// The wall time at which each test begins, in Unix seconds.
const BEGIN: u64 = 1_795_989_600;

/// Wall time that a test sets.
#[derive(Default)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(BEGIN + self.0.load(Ordering::Relaxed))
    }
}

/// A gateway's folder, and the world around it.
struct World {
    folder: TempDir,
    clock: Arc<Hand>,
    provider: Provider,
    dialer: Arc<RecordingDialer>,
    terms: Arc<ArcSwap<Terms>>,
    knobs: OAuth,
    /// Servers beside the one of [`World::permit`].
    others: Vec<Arc<Server>>,
}

impl World {
    /// Everything works: the server challenges, its authorization server registers whoever asks.
    async fn new() -> Self {
        Self::with(&[]).await
    }

    /// The same, with addresses that behave otherwise.
    async fn with(special: &[(&str, Behaviour)]) -> Self {
        let provider = Provider::start(None, answers(&usual())).await;
        let terms = Terms {
            public_url: "https://tollgate.example.com".into(),
            client_metadata_url: None,
            return_to: vec!["https://app.example.com/done".into()],
        };
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock: Arc::default(),
            dialer: RecordingDialer::with(Behaviour::Leads(provider.address), special),
            provider,
            terms: Arc::new(ArcSwap::from_pointee(terms)),
            knobs: OAuth {
                allow_http_loopback: true,
                revoke: true,
                ..OAuth::default()
            },
            others: Vec::new(),
        }
    }

    /// A process over the folder's database, with records of its own.
    fn process(&self) -> Process {
        let folder = self.folder.path();
        let metrics = Arc::<Metrics>::default();
        let own = folder.join(format!("process-{}", tollgate::id::token()));
        let options = Options::new(own.join("audit"));
        let journal = Journal::open(options, self.clock.clone(), &metrics).unwrap();
        let keyring = Keyring::open(&folder.join("keyring")).unwrap();
        let database = folder.join("tollgate.db");
        let store =
            Store::open_by(&database, &keyring, self.clock.clone(), metrics.clone()).unwrap();
        let egress = Egress::new(
            TableResolver::of(&[]),
            self.dialer.clone(),
            no_roots(),
            ample(),
            metrics.clone(),
        );
        let (made, told) = mpsc::channel(8);
        let connections = Connections::new(Needs {
            records: Arc::new(store),
            vault: keyring.vault(),
            egress,
            runtime: Handle::current(),
            journal: journal.clone(),
            metrics,
            clock: self.clock.clone(),
            terms: self.terms.clone(),
            spool: own.join("spool"),
            made,
        });
        Process {
            connections,
            journal,
            audit: own.join("audit"),
            told,
        }
    }

    fn wait(&self, seconds: u64) {
        self.clock.0.fetch_add(seconds, Ordering::Relaxed);
    }

    fn permit(&self, user: &'static str) -> Permit {
        self.permit_at(SERVER, user, Auth::OAuth(Box::new(self.knobs.clone())))
    }

    fn permit_at(&self, url: &str, user: &'static str, auth: Auth) -> Permit {
        self.maker(url, user, auth).permit()
    }

    /// For one of the other servers.
    fn permit_to(&self, server: &str, user: &'static str) -> Permit {
        let auth = Auth::OAuth(Box::new(self.knobs.clone()));
        let snapshot = self.maker(SERVER, user, auth).snapshot();
        decide(&snapshot, &subject("default", user), server).unwrap()
    }

    fn maker(&self, url: &str, user: &'static str, auth: Auth) -> Maker {
        let mut maker = Maker {
            auth,
            user,
            others: self.others.clone(),
            ..Maker::new(url)
        };
        for host in 1..=5 {
            let host = format!("127.0.0.{host}");
            maker.rules.grants.push(Grant {
                host: Host::Ip(host.parse().unwrap()),
                port: Port::Any,
                addresses: Vec::new(),
                address: None,
                legs: vec![Leg::OAuth("demo".into()), Leg::OAuth("other".into())],
                origin: "egress.toml:1: [[private]]".into(),
            });
        }
        maker
    }

    /// Answers to these questions from now on.
    fn answer(&self, list: &[(&str, Value)]) {
        self.provider.answer(answers(list));
    }

    /// What was asked, as `METHOD URL`, of those that begin with `begin`.
    fn asked(&self, begin: &str) -> Vec<String> {
        let asked = self.provider.asked().into_iter();
        asked
            .map(|ask| match ask {
                Value::String(ask) => ask,
                ask => ask["ask"].as_str().unwrap().to_owned(),
            })
            .filter(|ask| ask.starts_with(begin))
            .collect()
    }

    /// The forms that were posted to `url`.
    fn posted(&self, url: &str) -> Vec<Value> {
        let asked = self.provider.asked().into_iter();
        asked
            .filter(|ask| ask["ask"] == format!("POST {url}"))
            .map(|ask| ask["form"].clone())
            .collect()
    }
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

#[tokio::test]
async fn a_person_sees_what_is_asked_for_connects_and_comes_back() {
    let world = World::new().await;
    let (mut process, ann) = (world.process(), world.permit("ann"));
    assert_eq!(process.state(&ann).await, State::NotConnected);
    let preview = process.preview(&ann).await.unwrap();
    assert_eq!(
        preview,
        Preview {
            server: "demo".into(),
            title: None,
            issuer: "http://127.0.0.2:9000".into(),
            issuer_host: "127.0.0.2:9000".into(),
            issuer_changed_from: None,
            sign_in_host: "127.0.0.2:9000".into(),
            endpoint_hosts: Vec::new(),
            scopes: vec!["read".into()],
            redirect_host: "tollgate.example.com".into(),
            confirmation: "http://127.0.0.2:9000 with endpoints at 127.0.0.2:9000".into(),
        }
    );
    assert_eq!(
        world.asked("POST http://127.0.0.2"),
        [""; 0],
        "nothing is registered"
    );

    let begun = process.start(&ann).await;
    let url = &begun.started.authorize_url;
    assert!(
        url.starts_with("http://127.0.0.2:9000/authorize?tenant=1&"),
        "{url}"
    );
    let sent = begun.sent();
    for (name, value) in [
        ("tenant", "1"),
        ("response_type", "code"),
        ("client_id", "c-1"),
        ("redirect_uri", CALLBACK),
        ("scope", "read"),
        ("resource", SERVER),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(sent[name], value, "{name}");
    }
    assert_eq!(sent["state"].len(), 43);
    assert_eq!(sent["code_challenge"].len(), 43);
    assert_eq!(begun.started.cookie.len(), 8);
    assert_ne!(begun.started.cookie_value, sent["state"]);
    let until = i64::try_from(BEGIN + 600).unwrap();
    assert_eq!(process.state(&ann).await, State::Connecting(until));

    let finished = process.finish(&begun, &begun.right()).await.unwrap();
    assert_eq!((&*finished.server, finished.return_to), ("demo", None));
    assert_eq!(process.told.try_recv().unwrap().owner(), ann.owner());
    let posted = &world.posted("http://127.0.0.2:9000/token")[0];
    for (name, value) in [
        ("grant_type", "authorization_code"),
        ("code", "the-code"),
        ("client_id", "c-1"),
        ("redirect_uri", CALLBACK),
        ("resource", SERVER),
    ] {
        assert_eq!(posted[name], value, "{name}");
    }
    let view = process.view(&ann).await;
    assert_eq!(
        (view.state, view.mode, view.issuer.unwrap()),
        (State::Connected, "oauth".into(), "127.0.0.2:9000".into())
    );
    assert_eq!((view.scopes, view.refreshable), (vec!["read".into()], true));
    assert_eq!(view.expires_at, Some(i64::try_from(BEGIN + 3600).unwrap()));
    assert_eq!(process.token(&ann).await.unwrap(), "Bearer at-1");
    let bob = world.permit("bob");
    assert_eq!(process.state(&bob).await, State::NotConnected);
    assert_eq!(
        process.records().await,
        ["connect begun allowed -", "connect connected allowed -"]
    );
}
