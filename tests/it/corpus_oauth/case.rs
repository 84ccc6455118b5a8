//! A line of the corpus whose kind is `oauth`; a key that is not known fails the test.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use tollgate::{
    address::{Grant, Leg, Port, Rules, Target},
    connect::register::Client,
};

use crate::support::provider::{Answer, Answers};

pub(super) const SERVER: &str = "https://mcp.example.net/mcp";
const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/egress.jsonl");

/// Cases about what the gateway does with answers of tools, and about servers of other kinds: other tests have them.
const ELSEWHERE: [&str; 5] = [
    "openapi",
    "sse_endpoint_event",
    "tool_result",
    "icons",
    "elicitation_url",
];

#[derive(Deserialize)]
pub(super) struct Case {
    pub(super) id: String,
    /// `mcp_url`, `refresh` or `cimd`, and what is asked for.
    pub(super) input: BTreeMap<String, String>,
    pub(super) setup: Setup,
    pub(super) reason: String,
    allowlist: Vec<String>,
    expect: String,
    also_ok: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setup {
    dns: BTreeMap<String, Addresses>,
    #[serde(default)]
    pub(super) challenge: Option<String>,
    prm: Option<Value>,
    #[serde(rename = "as")]
    server: Option<Value>,
    #[serde(default)]
    as_body_bytes: usize,
    as_content_type: Option<String>,
    #[serde(default)]
    responses: Vec<Response>,
    #[serde(default)]
    pub(super) stored_token_endpoint: String,
    #[serde(default, rename = "client_id_metadata_url")]
    _document: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Addresses {
    #[serde(default, rename = "A")]
    a: Vec<String>,
    #[serde(default)]
    sequence: Vec<Self>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Response {
    url: String,
    status: u16,
    location: String,
}

/// The cases that are run here.
pub(super) fn all() -> Vec<Case> {
    let file = std::env::var("TOLLGATE_CORPUS").unwrap_or_else(|_| SHIPPED.to_owned());
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let cases = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    cases
        .filter(|case| case["kind"] == "oauth")
        .filter(|case| !ELSEWHERE.iter().any(|key| case["setup"].get(key).is_some()))
        .map(|case| {
            serde_json::from_value(case.clone()).unwrap_or_else(|error| panic!("{error}: {case}"))
        })
        .collect()
}

/// A client that was registered once.
pub(super) fn client() -> Client {
    serde_json::from_value(json!({ "id": "c", "auth": "none", "origin": "dynamic" })).unwrap()
}

fn answer(value: Value) -> Vec<Answer> {
    vec![serde_json::from_value(value).unwrap()]
}

impl Case {
    pub(super) fn accepts(&self, verdict: &str) -> bool {
        self.expect == verdict || self.also_ok.as_deref() == Some(verdict)
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.setup.dns.keys().map(String::as_str).collect()
    }

    /// Names and addresses, each name as often as it is asked.
    pub(super) fn addresses(&self) -> Vec<(&str, &str)> {
        let mut all = Vec::new();
        for (name, addresses) in &self.setup.dns {
            let steps = addresses.sequence.iter().chain([addresses]);
            all.extend(
                steps
                    .flat_map(|step| &step.a)
                    .map(|address| (name.as_str(), address.as_str())),
            );
        }
        all
    }

    pub(super) fn rules(&self) -> Rules {
        let grants = self.grants().map(|place| {
            let target = Target::from_authority(place).unwrap();
            Grant {
                host: target.host().clone(),
                port: Port::Exact(target.port()),
                addresses: Vec::new(),
                address: None,
                legs: vec![Leg::OAuth("demo".into())],
                origin: "the corpus".into(),
            }
        });
        Rules {
            grants: grants.collect(),
            ..Rules::default()
        }
    }

    /// Whether a private grant leads to this socket address.
    pub(super) fn is_granted(&self, address: &str) -> bool {
        let ip = address.rsplit_once(':').unwrap().0;
        let mut hosts = self.grants().map(|place| place.split(':').next().unwrap());
        hosts.any(|host| self.setup.dns[host].a.iter().any(|own| own == ip))
    }

    fn grants(&self) -> impl Iterator<Item = &str> {
        let entries = self.allowlist.iter();
        entries.filter_map(|entry| entry.strip_prefix("private:"))
    }

    /// What is published. A provider that nothing is said of is an ordinary one.
    pub(super) fn answers(&self) -> Answers {
        let ordinary = json!({
            "issuer": "https://auth.example.net",
            "authorization_endpoint": "https://auth.example.net/authorize",
            "token_endpoint": "https://auth.example.net/token",
            "code_challenge_methods_supported": ["S256"],
            "registration_endpoint": "https://auth.example.net/register",
        });
        let resource =
            json!({ "resource": SERVER, "authorization_servers": ["https://auth.example.net"] });
        let document = json!({
            "body": self.setup.server.as_ref().unwrap_or(&ordinary),
            "type": self.setup.as_content_type,
            "bytes": self.setup.as_body_bytes,
        });
        let mut answers = Answers::from([
            (
                "GET https://auth.example.net/.well-known/oauth-authorization-server".into(),
                answer(document),
            ),
            (
                "POST https://auth.example.net/register".into(),
                answer(
                    json!({ "status": 201, "body": { "client_id": "c", "token_endpoint_auth_method": "none" } }),
                ),
            ),
            (
                "POST https://auth.example.net/token".into(),
                answer(json!({ "body": { "access_token": "t", "token_type": "Bearer" } })),
            ),
            (
                "GET https://rebind.test/prm".into(),
                answer(json!({ "body": resource })),
            ),
        ]);
        if let Some(document) = &self.setup.prm {
            let place = "GET https://mcp.example.net/.well-known/oauth-protected-resource/mcp";
            answers.insert(place.into(), answer(json!({ "body": document })));
        }
        for response in &self.setup.responses {
            let headers = json!({ "location": response.location });
            let redirect = answer(json!({ "status": response.status, "headers": headers }));
            answers.insert(format!("POST {}", response.url), redirect);
        }
        answers
    }
}
