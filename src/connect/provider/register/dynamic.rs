//! Dynamic registration (RFC 7591): one request, and whether its answer is a client that can be used.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::{Host, Url};
use zeroize::Zeroizing;

use super::{Client, Management, Origin, has, word};
use crate::{
    connect::{
        Error,
        provider::{
            challenge,
            discovery::Discovered,
            document::MAX_URL,
            fetch::{JSON, Unfetched, Way, content, is_transient, json},
        },
    },
    egress::Fetched,
    policy::{self, TokenAuth},
};

/// Kinds of applications (OpenID Connect Registration, section 2).
const WEB: &str = "web";
const NATIVE: &str = "native";
/// The code of a refusal that is about where the browser comes back to (section 3.2.2).
const WRONG_REDIRECT: &str = "invalid_redirect_uri";

/// What is asked for (section 2).
#[derive(Serialize)]
struct Wanted<'a> {
    client_name: &'static str,
    application_type: &'static str,
    redirect_uris: [&'a str; 1],
    grant_types: [&'static str; 2],
    response_types: [&'static str; 1],
    token_endpoint_auth_method: &'static str,
}

/// What is answered (section 3.2.1). What is missing stands as it was asked for; the grants are not read, since some
/// providers echo what they do not have.
#[derive(Deserialize)]
struct Registered {
    #[serde(default)]
    client_id: String,
    client_secret: Option<Zeroizing<String>>,
    client_secret_expires_at: Option<Value>,
    token_endpoint_auth_method: Option<String>,
    registration_client_uri: Option<String>,
    registration_access_token: Option<Zeroizing<String>>,
}

/// Registers a client at `url`.
pub(super) async fn register(
    way: Way<'_>,
    url: &str,
    discovered: &Discovered,
    knobs: &policy::OAuth,
    public_url: &str,
) -> Result<Client, Error> {
    let server = || way.permit.server().name.clone();
    let lacking = |what: String| Error::Client {
        server: server(),
        what,
    };
    let auth = knobs
        .token_auth
        .or_else(|| method(discovered.token_auth_methods.as_deref()))
        .ok_or_else(|| {
            lacking(
                "its authorization server takes neither a public client nor a client secret"
                    .to_owned(),
            )
        })?;
    let redirect = format!("{public_url}/oauth/callback");
    let kind = application_type(&redirect);
    let mut answer = ask(way, url, &redirect, kind, auth).await?;
    if code(&answer).as_deref() == Some(WRONG_REDIRECT) {
        // Providers differ about the kind of those who are called back on their own machine.
        let kind = if kind == WEB { NATIVE } else { WEB };
        answer = ask(way, url, &redirect, kind, auth).await?;
    }
    if !answer.status.is_success() {
        return Err(lacking(refused(&answer)));
    }
    let registered = json(&answer).and_then(|text| serde_json::from_slice(text).ok());
    let registered: Registered = registered
        .ok_or_else(|| lacking("the answer to its registration was not understood".to_owned()))?;
    registered
        .into_client(auth)
        .map_err(|what| lacking(what.to_owned()))
}

/// Asks for a client of this kind; gives an answer that stands.
async fn ask(
    way: Way<'_>,
    url: &str,
    redirect: &str,
    kind: &'static str,
    auth: TokenAuth,
) -> Result<Fetched, Error> {
    let server = || way.permit.server().name.clone();
    let wanted = Wanted {
        client_name: "Tollgate",
        application_type: kind,
        redirect_uris: [redirect],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: word(auth),
    };
    let body = serde_json::to_vec(&wanted).expect("texts can be written");
    let answer = way.post(url, &[content(JSON)], Zeroizing::new(body)).await;
    let answer = answer.map_err(|unfetched| match unfetched {
        Unfetched::Forbidden(refusal) => Error::Refused(refusal),
        Unfetched::Failed(failed) => Error::Egress {
            server: server(),
            source: failed.error,
        },
    })?;
    if is_transient(&answer) {
        return Err(Error::Transient {
            server: server(),
            what: format!(
                "`{}` answered {} to a registration",
                answer.destination.host, answer.status
            ),
        });
    }
    Ok(answer)
}

/// How the client will authenticate: as a public client where it may, since some providers take any secret beside PKCE
/// for a second method. Where metadata is silent, as the RFC says (RFC 8414, section 2).
fn method(listed: Option<&[String]>) -> Option<TokenAuth> {
    let Some(listed) = listed else {
        return Some(TokenAuth::Basic);
    };
    [TokenAuth::None, TokenAuth::Basic, TokenAuth::Post]
        .into_iter()
        .find(|auth| has(listed, *auth))
}

/// `web` where the browser comes back to a host of its own, else `native` (OpenID Connect Registration, section 2).
fn application_type(redirect: &str) -> &'static str {
    let url = Url::parse(redirect).ok();
    let is_own = url
        .as_ref()
        .is_some_and(|url| url.scheme() == "https" && !is_local(url.host()));
    if is_own { WEB } else { NATIVE }
}

fn is_local(host: Option<Host<&str>>) -> bool {
    match host {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => true,
    }
}

/// The provider's error code, where it gives one.
fn code(answer: &Fetched) -> Option<String> {
    #[derive(Deserialize)]
    struct Refused {
        error: String,
    }
    let said = json(answer).and_then(|text| serde_json::from_slice::<Refused>(text).ok());
    said.map(|said| said.error)
        .filter(|code| challenge::is_code(code))
}

/// A refusal in words for the operator.
fn refused(answer: &Fetched) -> String {
    let code = code(answer).map_or_else(String::new, |code| format!(" ({code})"));
    let (host, status) = (&answer.destination.host, answer.status.as_u16());
    format!("`{host}` answered {status}{code} to a registration")
}

impl Registered {
    fn into_client(self, asked: TokenAuth) -> Result<Client, &'static str> {
        if self.client_id.is_empty() || self.client_id.len() > MAX_URL {
            return Err("the answer to its registration has no client_id");
        }
        let auth = match self.token_endpoint_auth_method.as_deref() {
            None => asked,
            Some("none") => TokenAuth::None,
            Some("client_secret_basic") => TokenAuth::Basic,
            Some("client_secret_post") => TokenAuth::Post,
            Some(_) => {
                return Err(
                    "its registration wants a token_endpoint_auth_method other than none, client_secret_basic and client_secret_post",
                );
            }
        };
        let secret = self.client_secret.filter(|secret| !secret.is_empty());
        if auth != TokenAuth::None && secret.is_none() {
            return Err("its registration wants a client_secret and gives none");
        }
        let expires = self.client_secret_expires_at.as_ref().and_then(whole);
        let management = self
            .registration_client_uri
            .zip(self.registration_access_token);
        Ok(Client {
            id: self.client_id,
            auth,
            secret_expires_at: expires.filter(|at| *at > 0 && secret.is_some()),
            secret,
            management: management.map(|(uri, token)| Management { uri, token }),
            origin: Origin::Dynamic,
        })
    }
}

/// A time, as a number or as text.
fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_i64(),
    }
}

#[cfg(test)]
mod tests;
