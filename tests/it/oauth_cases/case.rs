//! A line of the corpus; a key that is not known fails the test.

use std::{collections::BTreeMap, sync::Arc};

use serde::Deserialize;
use serde_json::{Value, json};
use tollgate::{
    connect::{
        Challenge, Terms,
        provider::{discovery, register, revoke, token},
    },
    deadline::Deadline,
    egress::Egress,
    policy::{CallLimits, File, Inputs, Permit, ServerLimits, compile, decide},
    secret::Secret,
    subject::Admins,
};

use super::outcome;
use crate::support::{permit::subject, provider::Answers};

#[derive(Deserialize)]
pub(super) struct Kind {
    #[serde(rename = "do")]
    does: String,
}

impl Kind {
    /// Whether it is run here.
    pub(super) fn is_of_one_request(&self) -> bool {
        const HERE: [&str; 7] = [
            "discover",
            "register",
            "exchange",
            "refresh",
            "probe",
            "unregister",
            "revoke",
        ];
        HERE.contains(&self.does.as_str())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) id: String,
    pub(super) source: String,
    pub(super) why: String,
    #[serde(rename = "do")]
    does: String,
    /// The server.
    #[serde(default = "server")]
    url: String,
    /// Lines of its `[auth]` table.
    #[serde(default)]
    auth: String,
    /// Lines of the `[auth]` tables of other servers, by name.
    #[serde(default)]
    others: BTreeMap<String, String>,
    /// Names that have a private grant for the server's OAuth.
    #[serde(default)]
    private: Vec<String>,
    /// Addresses of names that are not public ones.
    #[serde(default)]
    dns: BTreeMap<String, String>,
    #[serde(default)]
    challenge: Vec<String>,
    preferred: Option<String>,
    pub(super) deadline_ms: Option<u64>,
    #[serde(default)]
    given: Given,
    pub(super) answers: Answers,
    pub(super) expect: Value,
    /// All that is asked, in order.
    pub(super) asked: Option<Vec<Value>>,
}

/// What a request is made from.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    #[serde(default)]
    discovered: Value,
    #[serde(default)]
    terms: Published,
    #[serde(default)]
    client: Value,
    code: Option<Code>,
    refresh: Option<Refresh>,
    token_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    tokens: Option<Tokens>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    #[serde(default)]
    public_url: String,
    client_metadata_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Code {
    code: String,
    verifier: String,
    redirect_uri: String,
    resource: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refresh {
    token: String,
    scopes: Option<Vec<String>>,
    resource: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tokens {
    refresh: Option<String>,
    access: Option<String>,
}

fn server() -> String {
    "https://mcp.test/mcp".to_owned()
}

impl Case {
    /// Every host that has an answer, with its address.
    pub(super) fn hosts(&self) -> BTreeMap<String, String> {
        let urls = self
            .answers
            .keys()
            .map(|question| question.split_once(' ').unwrap().1);
        let named = urls.chain([self.url.as_str()]).map(|url| {
            let rest = url.split_once("://").unwrap().1;
            rest.split(['/', '?']).next().unwrap().to_owned()
        });
        let mut hosts: BTreeMap<String, String> =
            named.map(|host| (host, "1.1.1.1".to_owned())).collect();
        hosts.extend(self.dns.clone());
        hosts
    }

    /// A permit as policy files give it; the server trusts `root`.
    pub(super) fn permit(&self, root: &str) -> Permit {
        let mode = if self.auth.contains("mode =") {
            ""
        } else {
            "mode = 'oauth'\n"
        };
        let server = format!(
            "url = '{}'\naccess = 'everyone'\ntenants = ['default']\nca = ['root.pem']\n[auth]\n{mode}{}\n",
            self.url, self.auth
        );
        let grants = self.private.iter().map(|host| {
            format!("[[private]]\nhost = '{host}'\nport = 443\nfor = ['oauth:demo']\n")
        });
        let file = |path: &str, text: String| File {
            path: path.to_owned(),
            text,
        };
        let mut files = vec![
            file("servers/demo.toml", server),
            file("egress.toml", grants.collect()),
        ];
        for (name, auth) in &self.others {
            let text = format!(
                "url = 'https://{name}.test/mcp'\naccess = 'everyone'\ntenants = ['default']\n[auth]\nmode = 'oauth'\n{auth}\n"
            );
            files.push(file(&format!("servers/{name}.toml"), text));
        }
        let inputs = Inputs {
            files: &files,
            read: &|_| Ok(root.to_owned()),
            secret: &|_| Ok(Secret::new(b"own-secret".to_vec())),
            web: true,
            client_metadata: true,
            private_allowlist: None,
            access_mode: None,
            kubernetes: None,
            admins: Admins::default(),
            local: None,
            parent: None,
            limits: ServerLimits::default(),
            calls: CallLimits::default(),
            connected_only: false,
            own_addresses: Vec::new(),
            own_listeners: Vec::new(),
        };
        let snapshot = compile(&inputs).unwrap_or_else(|faults| panic!("{}: {faults:?}", self.id));
        decide(&snapshot, &subject("default", "ann"), "demo").unwrap()
    }

    /// Does what the case is about.
    pub(super) async fn run(&self, egress: &Egress, permit: &Permit, deadline: Deadline) -> Value {
        match self.does.as_str() {
            "discover" => {
                let lines = self.challenge.iter().map(|line| line.as_bytes().into());
                let challenge = Challenge(lines.collect());
                let preferred = self.preferred.as_deref();
                let found =
                    discovery::discover(egress, permit, Some(&challenge), preferred, deadline);
                outcome::discovered(found.await)
            }
            "register" => {
                let terms = self.given.terms();
                let found = self.given.discovered();
                match register::client(egress, permit, &found, &terms, deadline).await {
                    Ok(client) => json!({ "ok": client }),
                    Err(error) => outcome::failed(&error),
                }
            }
            "exchange" => self.exchange(egress, permit, deadline).await,
            "refresh" => self.refresh(egress, permit, deadline).await,
            "probe" => {
                let (client, endpoint) = (self.given.client(), self.given.token_endpoint());
                outcome::probed(register::probe(egress, permit, &client, endpoint, deadline).await)
            }
            "unregister" => {
                let client = self.given.client();
                json!({ "ok": register::unregister(egress, permit, &client, deadline).await })
            }
            _ => self.revoke(egress, permit).await,
        }
    }

    async fn exchange(&self, egress: &Egress, permit: &Permit, deadline: Deadline) -> Value {
        let found = discovery::Discovered {
            token_endpoint: self.given.token_endpoint().to_owned(),
            ..self.given.discovered()
        };
        let given = self.given.code.as_ref().expect("a code is given");
        let code = token::Code {
            code: &given.code,
            verifier: &given.verifier,
            redirect_uri: &given.redirect_uri,
            resource: given.resource.as_deref(),
        };
        let client = self.given.client();
        outcome::tokens(token::exchange(egress, permit, &client, &found, code, deadline).await)
    }

    async fn refresh(&self, egress: &Egress, permit: &Permit, deadline: Deadline) -> Value {
        let given = self
            .given
            .refresh
            .as_ref()
            .expect("a refresh token is given");
        let refresh = token::Refresh {
            token: &given.token,
            scopes: given.scopes.as_deref(),
            resource: given.resource.as_deref(),
        };
        let (client, endpoint) = (self.given.client(), self.given.token_endpoint());
        outcome::tokens(token::refresh(egress, permit, &client, endpoint, refresh, deadline).await)
    }

    async fn revoke(&self, egress: &Egress, permit: &Permit) -> Value {
        let tokens = self.given.tokens.as_ref().expect("tokens are given");
        let endpoint = self.given.revocation_endpoint.as_deref();
        let (refresh, access) = (tokens.refresh.as_deref(), tokens.access.as_deref());
        let client = self.given.client();
        outcome::revoked(revoke::revoke(egress, permit, &client, endpoint, refresh, access).await)
    }
}

impl Given {
    fn terms(&self) -> Terms {
        Terms {
            public_url: self.terms.public_url.as_str().into(),
            client_metadata_url: self.terms.client_metadata_url.as_deref().map(Arc::from),
            return_to: Vec::new(),
        }
    }

    fn discovered(&self) -> discovery::Discovered {
        let mut whole = json!(discovery::Discovered::default());
        laid_over(&mut whole, &self.discovered);
        serde_json::from_value(whole).unwrap()
    }

    fn client(&self) -> register::Client {
        let mut whole = json!({ "id": "c", "auth": "none", "origin": "dynamic" });
        laid_over(&mut whole, &self.client);
        serde_json::from_value(whole).unwrap()
    }

    fn token_endpoint(&self) -> &str {
        self.token_endpoint
            .as_deref()
            .unwrap_or("https://as.test/token")
    }
}

fn laid_over(whole: &mut Value, members: &Value) {
    let Some(members) = members.as_object() else {
        return;
    };
    whole.as_object_mut().unwrap().extend(members.clone());
}
