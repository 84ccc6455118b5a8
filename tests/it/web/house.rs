//! The pages behind a real listener, over the real store, vault and connections, with a provider that answers as the test
//! says.

mod visitor;

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpStream, runtime::Handle, sync::mpsc};
use tokio_util::sync::CancellationToken;
use tollgate::{
    address::{Grant, Host, Leg, Port, Rules},
    audit::{Journal, Options},
    config::Endpoint,
    connect::{Connections, Needs, Terms},
    egress::Egress,
    identity::{Browsers, Identity},
    listen::{Bound, Limits, Lobby, accept},
    policy::{Auth, OAuth, Server, Shared, Snapshot},
    secret::Secret,
    store::Store,
    subject::Admins,
    telemetry::Metrics,
    vault::Keyring,
    web::Web,
};

pub(super) use visitor::*;

use super::sign_ins::Hand;
use crate::{
    egress::{ample, no_roots},
    listen::front::{Client, dial},
    support::{
        client::patiently,
        dialer::{RecordingDialer, TableResolver},
        permit::Maker,
        provider::{Answers, Provider},
    },
};

/// Where browsers reach the pages.
pub(super) const LOCAL: &str = "http://127.0.0.1:8703";
/// The same, where a proxy ends TLS.
pub(super) const SECURE: &str = "https://tollgate.example.com";
/// The server's authorization server.
pub(super) const ISSUER: &str = "http://127.0.0.2:9000";
const SERVER: &str = "http://127.0.0.1:9000/mcp";
const RESOURCE: &str = "http://127.0.0.1:9000/.well-known/oauth-protected-resource/mcp";

/// A text that must come out as it is, wherever it is shown.
pub(super) const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'&";

/// The pages, and the world around them.
pub(super) struct House {
    pub(super) clock: Arc<Hand>,
    pub(super) provider: Provider,
    pub(super) web: Web,
    pub(super) policy: Arc<ArcSwap<Snapshot>>,
    pub(super) folder: TempDir,
    public_url: &'static str,
    address: SocketAddr,
    journal: Journal,
    metrics: Arc<Metrics>,
    drain: CancellationToken,
    _made: mpsc::Receiver<tollgate::policy::Permit>,
}

impl House {
    pub(super) async fn local() -> Self {
        Self::at(LOCAL, |_| Identity::local("ann", "default")).await
    }

    pub(super) async fn secure() -> Self {
        Self::at(SECURE, |_| Identity::local("ann", "default")).await
    }

    /// Pages at `public_url`, for the people whom `identity` knows.
    pub(super) async fn at(
        public_url: &'static str,
        identity: impl FnOnce(Arc<Hand>) -> Identity,
    ) -> Self {
        Self::within(Limits::default(), public_url, identity).await
    }

    /// The same, with these bounds.
    pub(super) async fn within(
        limits: Limits,
        public_url: &'static str,
        identity: impl FnOnce(Arc<Hand>) -> Identity,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Hand::new();
        let metrics = Arc::<Metrics>::default();
        let options = Options::new(folder.path().join("audit"));
        let journal = Journal::open(options, clock.clone(), &metrics).unwrap();
        let keyring = Keyring::open(&folder.path().join("keyring")).unwrap();
        let file = folder.path().join("tollgate.db");
        let store = Store::open_by(&file, &keyring, clock.clone(), metrics.clone()).unwrap();
        let store = Arc::new(store);
        let provider = Provider::start(None, answers(&usual())).await;
        let terms = Arc::new(ArcSwap::from_pointee(Terms {
            public_url: public_url.into(),
            client_metadata_url: None,
            return_to: vec!["https://app.example.com/done".into()],
        }));
        let (made, _made) = mpsc::channel(8);
        let connections = Connections::new(Needs {
            records: store.clone(),
            vault: keyring.vault(),
            egress: Egress::new(
                TableResolver::of(&[]),
                RecordingDialer::to(provider.address),
                no_roots(),
                ample(),
                metrics.clone(),
            ),
            runtime: Handle::current(),
            journal: journal.clone(),
            metrics: metrics.clone(),
            clock: clock.clone(),
            terms: terms.clone(),
            spool: folder.path().join("spool"),
            made,
        });
        let policy = Arc::new(ArcSwap::from_pointee(policy()));
        let web = Web::new(tollgate::web::Needs {
            connections,
            browsers: Browsers::new(
                identity(clock.clone()),
                store,
                keyring.mac("sessions"),
                clock.clone(),
            ),
            policy: {
                let policy = policy.clone();
                Arc::new(move || policy.load_full())
            },
            terms,
            mac: keyring.mac("web"),
            journal: journal.clone(),
            metrics: metrics.clone(),
            clock: clock.clone(),
        });
        let mut bound = Bound::new(&Endpoint::Tcp("127.0.0.1:0".parse().unwrap()), 1).unwrap();
        let Endpoint::Tcp(address) = bound.address else {
            panic!("a TCP listener");
        };
        let drain = CancellationToken::new();
        let lobby = Lobby::new(limits, None, metrics.clone(), drain.clone());
        let socket = bound.sockets.pop().unwrap();
        tokio::spawn(accept(socket, lobby, web.clone()));
        Self {
            clock,
            provider,
            web,
            policy,
            folder,
            public_url,
            address,
            journal,
            metrics,
            drain,
            _made,
        }
    }

    /// A browser that is signed in as the local user.
    pub(super) async fn visitor(&self) -> Visitor<'_> {
        let mut visitor = self.stranger();
        let link = self.web.invite(None, None).await.unwrap();
        visitor.sign_in(&link.invitation.token).await;
        visitor
    }

    /// A browser that is not.
    pub(super) fn stranger(&self) -> Visitor<'_> {
        Visitor {
            house: self,
            cookies: BTreeMap::new(),
        }
    }

    /// A client that says what it is told to.
    pub(super) async fn connect(&self) -> Client<TcpStream> {
        Client(dial(self.address).await)
    }

    /// Sends a request as it is.
    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Page {
        send(self.address, request).await
    }

    /// `kind method outcome code` of every record but those of the process; none shows a secret.
    pub(super) async fn records(&self) -> Vec<String> {
        self.drain.cancel();
        self.web.settle();
        self.journal.close().await.unwrap();
        let records = crate::audit::records(&self.folder.path().join("audit"));
        let text = |record: &Value, key: &str| record[key].as_str().unwrap_or("-").to_owned();
        let summary = |record: &Value| {
            ["kind", "method", "outcome", "code"]
                .map(|key| text(record, key))
                .join(" ")
        };
        records.iter().map(summary).collect()
    }

    pub(super) fn metrics(&self) -> String {
        self.metrics.render()
    }

    /// The operator takes a server away: its file goes, or is for another tenant from now on.
    pub(super) fn withdraw(&self, name: &str, file_goes: bool) {
        let mut next = policy();
        let servers = Arc::make_mut(&mut next.servers);
        let server = servers.remove(name).and_then(Arc::into_inner).unwrap();
        if !file_goes {
            let tenants = vec!["other".into()];
            let moved = Arc::new(Server { tenants, ..server });
            servers.insert(moved.name.clone(), moved);
        }
        self.policy.store(Arc::new(next));
    }

    /// How often something was posted to `url`.
    pub(super) fn posted(&self, url: &str) -> usize {
        let question = format!("POST {url}");
        let asked = self.provider.asked();
        asked.iter().filter(|ask| ask["ask"] == *question).count()
    }

    /// The database, in somebody else's hands.
    pub(super) fn sql(&self, statement: &str) -> usize {
        let file = self.folder.path().join("tollgate.db");
        let connection = rusqlite::Connection::open(file).unwrap();
        connection.execute(statement, []).unwrap()
    }

    /// Answers to these questions from now on.
    pub(super) fn answer(&self, list: &[(&str, Value)]) {
        self.provider.answer(answers(list));
    }
}

pub(super) fn field(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// A server of each kind, and one of another tenant.
pub(super) fn policy() -> Snapshot {
    let knobs = OAuth {
        allow_http_loopback: true,
        revoke: true,
        ..OAuth::default()
    };
    let shared = Shared {
        header: None,
        secret: Some(Arc::new(Secret::new(b"the-operators-own".to_vec()))),
    };
    let servers = [
        server("demo", Some(HOSTILE), Auth::OAuth(Box::new(knobs))),
        server(
            "key",
            Some("Key"),
            Auth::Header("x-api-key".parse().unwrap()),
        ),
        server("token", None, Auth::Bearer),
        server("open", Some("Open"), Auth::None),
        server("shared", None, Auth::Shared(shared)),
        Server {
            tenants: vec!["other".into()],
            ..server("foreign", None, Auth::None)
        },
    ];
    let grants = ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map(|host| Grant {
        host: Host::Ip(host.parse().unwrap()),
        port: Port::Any,
        addresses: Vec::new(),
        address: None,
        legs: vec![Leg::OAuth("demo".into())],
        origin: "egress.toml:1: [[private]]".into(),
    });
    let named = servers.map(|server| (server.name.clone(), Arc::new(server)));
    Snapshot {
        generation: 1,
        servers: Arc::new(named.into_iter().collect()),
        admins: Admins {
            users: vec!["ann".into()],
            groups: Vec::new(),
        },
        addresses: Arc::new(Rules {
            grants: grants.into(),
            ..Rules::default()
        }),
        ..Snapshot::default()
    }
}

fn server(name: &str, title: Option<&str>, auth: Auth) -> Server {
    let maker = Maker {
        auth,
        ..Maker::new(SERVER)
    };
    let mut snapshot = maker.snapshot();
    let servers = Arc::make_mut(&mut snapshot.servers);
    let server = servers.remove("demo").and_then(Arc::into_inner);
    Server {
        name: name.into(),
        title: title.map(Arc::from),
        ..server.unwrap()
    }
}

fn answers(list: &[(&str, Value)]) -> Answers {
    let answer = |answer: &Value| serde_json::from_value(answer.clone()).unwrap();
    let each = list.iter();
    each.map(|(question, one)| ((*question).to_owned(), vec![answer(one)]))
        .collect()
}

/// A provider that works.
fn usual() -> Vec<(&'static str, Value)> {
    let challenge = format!("Bearer resource_metadata=\"{RESOURCE}\", scope=\"read\"");
    vec![
        (
            "POST http://127.0.0.1:9000/mcp",
            json!({"status": 401, "headers": {"www-authenticate": challenge}}),
        ),
        (
            "GET http://127.0.0.1:9000/.well-known/oauth-protected-resource/mcp",
            json!({"body": {"resource": SERVER, "authorization_servers": [ISSUER]}}),
        ),
        (
            "GET http://127.0.0.2:9000/.well-known/oauth-authorization-server",
            json!({"body": metadata()}),
        ),
        (
            "POST http://127.0.0.2:9000/register",
            json!({"status": 201, "body": {
                "client_id": "c-1", "token_endpoint_auth_method": "none",
            }}),
        ),
        (
            "POST http://127.0.0.2:9000/token",
            json!({"body": {
                "access_token": "at-1", "refresh_token": "rt-1", "token_type": "Bearer",
                "expires_in": 3600, "scope": "read",
            }}),
        ),
        ("POST http://127.0.0.3:9000/revoke", json!({})),
    ]
}

/// What the authorization server says of itself.
pub(super) fn metadata() -> Value {
    json!({
        "issuer": ISSUER,
        "authorization_endpoint": format!("{ISSUER}/authorize"),
        "token_endpoint": format!("{ISSUER}/token"),
        "registration_endpoint": format!("{ISSUER}/register"),
        "revocation_endpoint": "http://127.0.0.3:9000/revoke",
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    })
}
