//! One connection from its discovery to its revocation, or one refresh.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate::{
    address::{Leg, Rules, Target},
    config,
    connect::{
        Challenge, Error, Revoked, Terms,
        discovery::discover,
        register::{self, Client, Origin},
        revoke::revoke,
        token::{self, Failure},
    },
    deadline::Deadline,
    egress::{self, Dns, DnsSettings, Egress},
    policy::{Auth, OAuth, Permit, TokenAuth, Trust},
};

use super::{
    super::case::{self, grant},
    Case, Verdict,
};
use crate::{
    egress::{ample, no_roots},
    support::{
        certs::Authority,
        dialer::RecordingDialer,
        nameserver::NameServer,
        permit::Maker,
        provider::{Answers, Provider},
    },
};

const ISSUER: &str = "https://auth.example.net";
/// Where a connection may lead: the addresses of the server and of its authorization server, and of a name that is public
/// when it is first asked for.
const HOSTS: [&str; 3] = ["mcp.example.net", "auth.example.net", "rebind.test"];

/// Makes the case's connection.
pub(super) async fn connect(case: &Case) -> Verdict {
    let place = Place::new(case).await;
    let stopped = match &case.setup.stored_token_endpoint {
        Some(endpoint) => {
            assert!(case.input.refresh.is_some());
            place.refresh(endpoint).await
        }
        None => place.walk(case).await,
    };
    place.check(case);
    stopped
        .err()
        .unwrap_or_else(|| Verdict("allow", "connected".to_owned()))
}

/// A document that says who the client is: Tollgate never fetches one. It only names its own, which has to be public https.
pub(super) fn document(url: &str) -> Verdict {
    let text = format!("[connect]\nclient_metadata_url = \"{url}\"\n");
    let environment = config::Environment {
        state_directory: Some("/nonexistent".into()),
        ..config::Environment::default()
    };
    match config::read(Some(&text), &environment) {
        Ok(_) => Verdict("allow", "it may be named".to_owned()),
        Err(faults) => Verdict("deny", faults[0].to_string()),
    }
}

/// The world of a case.
struct Place {
    permit: Permit,
    egress: Egress,
    provider: Provider,
    dialer: Arc<RecordingDialer>,
    _names: NameServer,
}

impl Place {
    async fn new(case: &Case) -> Self {
        let authority = Authority::new();
        let provider = Provider::start(Some(authority.acceptor(&HOSTS)), answers(case)).await;
        let dialer = RecordingDialer::to(provider.address);
        let names = case.setup.dns.clone();
        let names = NameServer::start(move |question| case::reply(&names, question)).await;
        let settings = DnsSettings {
            servers: vec![names.address],
            zones: Vec::new(),
            patience: case::PATIENCE,
        };
        let egress = Egress::new(
            Arc::new(Dns::new(&settings).unwrap()),
            dialer.clone(),
            no_roots(),
            ample(),
            Arc::default(),
        );
        Self {
            permit: permit(case, &authority),
            egress,
            provider,
            dialer,
            _names: names,
        }
    }

    /// Discovery, registration, a code, and the end of the tokens.
    async fn walk(&self, case: &Case) -> Result<(), Verdict> {
        let lines = case.setup.challenge.iter();
        let lines = lines.map(|line| line.as_bytes().into()).collect();
        let challenge = Challenge(lines);
        let (egress, permit) = (&self.egress, &self.permit);
        let found = discover(egress, permit, Some(&challenge), None, soon())
            .await
            .map_err(stopped)?;
        let terms = Terms {
            public_url: "https://tollgate.example.com".into(),
            ..Terms::default()
        };
        let client = register::client(egress, permit, &found, &terms, soon())
            .await
            .map_err(stopped)?;
        let code = token::Code {
            code: "c",
            verifier: "v",
            redirect_uri: "https://tollgate.example.com/oauth/callback",
            resource: found.resource.as_deref(),
        };
        let tokens = token::exchange(egress, permit, &client, &found, code, soon())
            .await
            .map_err(failed)?;
        let (access, refresh) = (Some(tokens.access.as_str()), tokens.refresh.as_deref());
        let refresh = refresh.map(String::as_str);
        let end = found.revocation_endpoint.as_deref();
        match revoke(egress, permit, &client, end, refresh, access).await {
            Revoked::No => Err(Verdict("deny", "it could not be revoked".to_owned())),
            Revoked::Yes | Revoked::Unsupported => Ok(()),
        }
    }

    /// A refresh at an endpoint that was kept.
    async fn refresh(&self, endpoint: &str) -> Result<(), Verdict> {
        let client = Client {
            id: "c".to_owned(),
            secret: None,
            auth: TokenAuth::None,
            secret_expires_at: None,
            management: None,
            origin: Origin::Dynamic,
        };
        let refresh = token::Refresh {
            token: "r",
            scopes: None,
            resource: None,
        };
        let (egress, permit) = (&self.egress, &self.permit);
        token::refresh(egress, permit, &client, endpoint, refresh, soon())
            .await
            .map(drop)
            .map_err(failed)
    }

    /// Whatever the verdict: nothing was dialled but what may be, and nobody else was asked.
    fn check(&self, case: &Case) {
        let granted = granted(case);
        let judged = |host: &str| {
            let public = ["1.1.1.1:443", "1.0.0.1:443"].contains(&host);
            public || (!granted.grants.is_empty() && host == "10.0.5.5:443")
        };
        let dialled = self.dialer.dialled();
        let id = &case.id;
        assert!(dialled.iter().all(|to| judged(to)), "{id}: {dialled:?}");
        for asked in self.provider.asked() {
            let question = asked["ask"].as_str().or(asked.as_str()).unwrap().to_owned();
            let url = question.split_once(' ').unwrap().1;
            let host = Target::from_wire(url).unwrap().host().to_string();
            assert!(HOSTS.contains(&&*host), "{id}: {question}");
        }
        assert!(self.provider.asked().len() <= 12, "{id}");
    }
}

fn soon() -> Deadline {
    Deadline::after(std::time::Duration::from_secs(30))
}

fn granted(case: &Case) -> Rules {
    let leg = || Leg::OAuth("demo".into());
    let entries = case.allowlist.iter();
    Rules {
        grants: entries.filter_map(|entry| grant(entry, leg())).collect(),
        ..Rules::default()
    }
}

fn permit(case: &Case, authority: &Authority) -> Permit {
    let url = case.input.mcp_url.as_deref();
    Maker {
        auth: Auth::OAuth(Box::new(OAuth::default())),
        trust: Trust {
            roots: vec![authority.pem().into()],
            digest: [1; 32],
        },
        rules: granted(case),
        ..Maker::new(url.unwrap_or("https://mcp.example.net/mcp"))
    }
    .permit()
}

/// What the server and its authorization server say; they are as usual where the case does not say otherwise.
fn answers(case: &Case) -> Answers {
    let setup = &case.setup;
    let resource = json!({
        "resource": "https://mcp.example.net/mcp",
        "authorization_servers": [ISSUER],
    });
    let metadata = json!({
        "issuer": ISSUER,
        "authorization_endpoint": format!("{ISSUER}/authorize"),
        "token_endpoint": format!("{ISSUER}/token"),
        "code_challenge_methods_supported": ["S256"],
    });
    let prm = "GET https://mcp.example.net/.well-known/oauth-protected-resource/mcp";
    let metadata = setup.metadata.clone().unwrap_or(metadata);
    let metadata =
        json!({ "body": metadata, "bytes": setup.as_body_bytes, "type": setup.as_content_type });
    let tokens = json!({ "access_token": "a", "token_type": "Bearer", "refresh_token": "r" });
    let mut answers = Answers::new();
    let mut add = |question: String, answer: Value| {
        answers.insert(question, vec![serde_json::from_value(answer).unwrap()]);
    };
    add(
        "GET https://rebind.test/prm".to_owned(),
        json!({ "body": resource }),
    );
    if let Some(published) = &setup.prm {
        add(prm.to_owned(), json!({ "body": published }));
    }
    add(
        format!("GET {ISSUER}/.well-known/oauth-authorization-server"),
        metadata,
    );
    let client = json!({ "status": 201, "body": { "client_id": "c" } });
    add(format!("POST {ISSUER}/register"), client);
    add(format!("POST {ISSUER}/token"), json!({ "body": tokens }));
    add(format!("POST {ISSUER}/revoke"), json!({}));
    for other in &setup.responses {
        let headers = json!({ "location": other.location });
        let answer = json!({ "status": other.status, "headers": headers });
        add(format!("POST {}", other.url), answer);
    }
    answers
}

fn stopped(error: Error) -> Verdict {
    let refused = match &error {
        Error::Refused(_) => true,
        Error::Egress { source, .. } => is_blocked(source),
        _ => false,
    };
    Verdict(if refused { "deny" } else { "error" }, error.to_string())
}

fn failed(failure: Failure) -> Verdict {
    let refused = matches!(&failure, Failure::Egress(error) if is_blocked(error));
    Verdict(if refused { "deny" } else { "error" }, failure.to_string())
}

fn is_blocked(error: &egress::Error) -> bool {
    let code = error.code().as_str();
    ["egress.address_blocked", "egress.name_blocked"].contains(&code)
}
