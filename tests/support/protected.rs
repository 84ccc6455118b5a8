//! A tool server that lets in only whom it knows, and the gateway before it with its connections at hand.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tollgate::{
    app::load::Loader,
    clock::SystemClock,
    config::Environment,
    connect::Callback,
    deadline::Deadline,
    identity::Identity,
    policy::{self, Permit, Snapshot},
};
use url::Url;

use super::{
    agent::Agent,
    client::{Ask, Exchange, Reply},
    gate::Policy,
    permit::subject,
    pipeline::{Door, Pipeline},
    provider::{Answers, Provider},
    tools::{Seen, Step},
};

/// What the server does with whom it knows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Treat {
    /// Lets in.
    In,
    /// Wants more scopes.
    Narrow,
    /// Does not let in, and does not say what would help.
    Shut,
    /// Sends to its login page, with this status.
    Away(u16),
    /// Sends to itself, with a slash more and this status.
    Moved(u16),
}

/// Knows credentials by the value of the header that they stand in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doorkeeper(Arc<Mutex<HashMap<String, Treat>>>);

impl Doorkeeper {
    /// One that lets these in.
    pub(crate) fn letting(values: &[&str]) -> Self {
        let own = Self::default();
        for value in values {
            own.treat(value, Treat::In);
        }
        own
    }

    /// Treats a credential like this from now on.
    pub(crate) fn treat(&self, value: &str, treat: Treat) {
        self.0.lock().unwrap().insert(value.to_owned(), treat);
    }

    /// Does not know a credential any more.
    pub(crate) fn forget(&self, value: &str) {
        self.0.lock().unwrap().remove(value);
    }

    /// What it says to a request whose credential stands in `header`; nothing to one that may go on.
    pub(crate) fn says(&self, header: &str, seen: &Seen) -> Option<Vec<Step>> {
        let known = self.0.lock().unwrap();
        let treat = seen.header(header).and_then(|value| known.get(value));
        let head = match treat {
            Some(Treat::In) => return None,
            None => "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nWWW-Authenticate: Bearer error=\"invalid_token\"".to_owned(),
            Some(Treat::Narrow) => "403 Forbidden\r\nWWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"notes.write\"".to_owned(),
            Some(Treat::Shut) => "403 Forbidden".to_owned(),
            Some(Treat::Moved(status)) => format!("{status} Moved\r\nLocation: /mcp/"),
            Some(Treat::Away(status)) => format!("{status} Found\r\nLocation: /login?next=SENTINEL"),
        };
        let text = format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n");
        Some(vec![Step::Say(text.into_bytes())])
    }
}

/// The pipeline over files, with its connections at hand.
pub(crate) struct House {
    pub(crate) pipeline: Pipeline,
    pub(crate) policy: Arc<Snapshot>,
    door: Door,
    _dir: TempDir,
}

impl House {
    /// The caller is always `ann`.
    pub(crate) fn of_ann(policy: &Policy) -> Self {
        Self::open(policy, Identity::local("ann", "default"))
    }

    /// Callers show keys.
    pub(crate) fn of_keys(policy: &Policy) -> Self {
        Self::open(policy, Identity::keys(Arc::new(SystemClock)))
    }

    fn open(policy: &Policy, identity: Identity) -> Self {
        let dir = tempfile::tempdir().unwrap();
        policy.write(dir.path(), "web = \"127.0.0.1:0\"\n");
        let loader = Loader::new(dir.path().join("policy"), Environment::default());
        let loaded = loader.load().unwrap_or_else(|faults| panic!("{faults:?}"));
        let pipeline = Pipeline::new();
        let door = pipeline.listen_to(loaded.policy.clone(), identity);
        Self {
            pipeline,
            policy: loaded.policy,
            door,
            _dir: dir,
        }
    }

    /// Leave of a user to use a server.
    pub(crate) fn permit(&self, tenant: &str, user: &str, server: &str) -> Permit {
        policy::decide(&self.policy, &subject(tenant, user), server).unwrap()
    }

    /// Has a user of the tenant `default` enter a secret for a server.
    pub(crate) async fn enter(&self, user: &str, server: &str, secret: &str) {
        let permit = self.permit("default", user, server);
        let connections = &self.pipeline.connections;
        connections.enter(&permit, secret.as_bytes()).await.unwrap();
    }

    /// Has `ann` connect to the server `s` at a provider, which answers with its next tokens.
    pub(crate) async fn connect(&self, provider: &Authority) {
        let permit = self.permit("default", "ann", "s");
        let connections = &self.pipeline.connections;
        let deadline = || Deadline::after(std::time::Duration::from_secs(20));
        let issuer = provider.issuer();
        let preview = connections.preview(&permit, deadline()).await;
        let confirmed = preview.unwrap().confirmation;
        let started = connections
            .start(&permit, None, &confirmed, deadline())
            .await;
        let started = started.unwrap_or_else(|error| panic!("{error:?}"));
        let url = Url::parse(&started.authorize_url).unwrap();
        let state = url.query_pairs().find(|(name, _)| name == "state").unwrap();
        let query = [("code", "a-code"), ("state", &*state.1), ("iss", &issuer)];
        let query = query.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let callback = Callback {
            query: &query,
            cookies: &[(started.cookie, started.cookie_value)],
            owner: permit.owner(),
        };
        let judge = |_: &str| Some(permit.clone());
        let finished = connections.finish(callback, judge, deadline()).await;
        finished.unwrap_or_else(|error| panic!("{error:?}"));
    }

    pub(crate) async fn open_stream(&self, ask: Ask) -> Exchange {
        self.door.open(ask).await
    }

    /// Sends a request and reads its whole answer.
    pub(crate) async fn send(&self, ask: Ask) -> Reply {
        self.door.open(ask).await.whole().await
    }

    /// The agent in a session of 2025-11-25, as a client of these capabilities.
    pub(crate) async fn session(&self, mut agent: Agent, capabilities: &str) -> Agent {
        let welcome = self.send(agent.hello("2025-11-25", capabilities)).await;
        assert_eq!(welcome.status, 200, "{}", welcome.body);
        agent.session = welcome.header("mcp-session-id").map(str::to_owned);
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(self.send(agent.post(ready)).await.status, 202);
        agent
    }
}

/// An authorization server that gives out the tokens that a test names.
pub(crate) struct Authority(Provider);

impl Authority {
    /// Gives out one answer after the other: an access token, and a refresh token where there is one.
    pub(crate) async fn giving(tokens: &[(&str, Option<&str>)]) -> Self {
        let own = Self(Provider::start(None, Answers::default()).await);
        let answers: Vec<Value> = tokens
            .iter()
            .map(|(access, refresh)| {
                json!({ "body": { "access_token": access, "refresh_token": refresh, "token_type": "Bearer", "scope": "notes.read" } })
            })
            .collect();
        own.says(answers);
        own
    }

    /// What it says next to whoever wants tokens, the last for ever.
    pub(crate) fn says(&self, answers: Vec<Value>) {
        let question = format!("POST {}/token", self.issuer());
        let answers = serde_json::from_value(json!({ question: answers })).unwrap();
        self.0.answer(answers);
    }

    pub(crate) fn issuer(&self) -> String {
        format!("http://{}", self.0.address)
    }

    /// What was asked for new tokens.
    pub(crate) fn refreshes(&self) -> usize {
        let asked = self.0.asked();
        let refreshes = asked.iter();
        let refreshes = refreshes.filter(|asked| asked["form"]["grant_type"] == "refresh_token");
        refreshes.count()
    }

    /// The policy of one server `s` at `address`, whose tokens this gives out.
    pub(crate) fn policy(&self, address: std::net::SocketAddr, keys: &str) -> Policy {
        let issuer = self.issuer();
        let auth = format!(
            "[auth]\nmode = \"oauth\"\nclient_id = \"gate\"\nissuer = \"{issuer}\"\nallow_http_loopback = true\n\
             endpoints = {{ authorization = \"{issuer}/authorize\", token = \"{issuer}/token\" }}\n"
        );
        let grant = "[[private]]\nhost = \"127.0.0.1\"\nport = \"any\"\nfor = [\"oauth:s\"]\n";
        Policy::local("")
            .server("s", address, keys, &auth)
            .file("egress.toml", grant)
    }
}
