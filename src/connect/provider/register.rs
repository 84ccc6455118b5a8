//! The client: the operator's, else the URL of its metadata, else one that is registered now (RFC 7591, RFC 7592).

mod dynamic;
mod known;

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

pub use self::known::{Probe, probe, unregister};

use super::{discovery::Discovered, fetch::Way};
use crate::{
    connect::{Error, Terms},
    deadline::Deadline,
    egress::Egress,
    policy::{self, Permit, PreRegistered, Registration, TokenAuth},
};

/// Who asks for tokens. It is kept sealed, and shows no secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// `client_id`, never empty.
    pub id: String,
    /// `client_secret`. A public client may have one too: some providers give it, and later want to see it.
    pub secret: Option<Zeroizing<String>>,
    /// How it authenticates at the token endpoint.
    #[serde(with = "Word")]
    pub auth: TokenAuth,
    /// When the secret ends, in seconds since 1970; `None` is never.
    pub secret_expires_at: Option<i64>,
    /// How the registration is managed, where the provider lets it be.
    pub management: Option<Management>,
    /// Where it comes from.
    pub origin: Origin,
}

/// RFC 7592, section 3.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Management {
    /// `registration_client_uri`.
    pub uri: String,
    /// `registration_access_token`.
    pub token: Zeroizing<String>,
}

/// Where a client comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The operator registered it.
    PreRegistered,
    /// Its id is the URL of its metadata.
    Metadata,
    /// Tollgate registered it.
    Dynamic,
}

/// The words of RFC 7591, section 2.
#[derive(Serialize, Deserialize)]
#[serde(remote = "TokenAuth")]
enum Word {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
}

/// The client for what was discovered: nothing of it is kept yet.
///
/// # Errors
///
/// [`Error::Client`] says why only the operator can go on; [`Error::Transient`] and [`Error::Egress`] that the provider
/// is out of reach.
pub async fn client(
    egress: &Egress,
    permit: &Permit,
    discovered: &Discovered,
    terms: &Terms,
    deadline: Deadline,
) -> Result<Client, Error> {
    let knobs = knobs(permit, discovered);
    match source(permit, discovered, &knobs, terms)? {
        Source::Given(client) => Ok(client),
        Source::Document(url) => Ok(Client::of_metadata(url)),
        Source::Endpoint(url) => {
            let way = Way {
                egress,
                permit,
                deadline,
            };
            dynamic::register(way, url, discovered, &knobs, &terms.public_url).await
        }
    }
}

/// Whether [`client`] has a way to one; nothing is sent.
///
/// # Errors
///
/// [`Error::Client`], as there.
pub fn possible(permit: &Permit, discovered: &Discovered, terms: &Terms) -> Result<(), Error> {
    let knobs = knobs(permit, discovered);
    source(permit, discovered, &knobs, terms).map(|_| ())
}

/// Where a client can be had.
enum Source<'a> {
    /// It is the operator's.
    Given(Client),
    /// Its metadata is at this URL.
    Document(&'a str),
    /// It is registered at this one.
    Endpoint(&'a str),
}

fn knobs(permit: &Permit, discovered: &Discovered) -> policy::OAuth {
    let own = permit.server().auth.oauth().cloned().unwrap_or_default();
    discovered.knobs(&own)
}

fn source<'a>(
    permit: &Permit,
    discovered: &'a Discovered,
    knobs: &policy::OAuth,
    terms: &'a Terms,
) -> Result<Source<'a>, Error> {
    let lacking = |what: &str| Error::Client {
        server: permit.server().name.clone(),
        what: what.to_owned(),
    };
    let wants = |way| knobs.registration == Registration::Auto || knobs.registration == way;
    if let Some(given) = &knobs.client
        && wants(Registration::PreRegistered)
    {
        let client = pre_registered(given, discovered, knobs);
        return client.map(Source::Given).map_err(lacking);
    }
    let document = terms.client_metadata_url.as_deref();
    if let Some(url) = document.filter(|_| discovered.cimd_supported && wants(Registration::Cimd)) {
        return Ok(Source::Document(url));
    }
    let endpoint = discovered.registration_endpoint.as_deref();
    if let Some(url) = endpoint.filter(|_| wants(Registration::Dcr)) {
        return Ok(Source::Endpoint(url));
    }
    Err(lacking(match knobs.registration {
        Registration::Auto => "its authorization server registers nobody by itself",
        Registration::PreRegistered => "auth.client_id and auth.issuer are not set",
        Registration::Dcr => {
            "auth.registration is \"dcr\", and its authorization server names no registration_endpoint"
        }
        Registration::Cimd => {
            "auth.registration is \"cimd\", which needs connect.client_metadata_url and an authorization server that supports it"
        }
    }))
}

/// The operator's client, which is one of exactly one issuer.
fn pre_registered(
    given: &PreRegistered,
    discovered: &Discovered,
    knobs: &policy::OAuth,
) -> Result<Client, &'static str> {
    let is_theirs =
        |issuer: &Option<std::sync::Arc<str>>| issuer.as_deref() == Some(&discovered.issuer);
    if !is_theirs(&knobs.issuer) && !is_theirs(&knobs.trusted_issuer) {
        return Err(
            "auth.client_id is a client of auth.issuer, and its authorization server is another now",
        );
    }
    let secret = given
        .secret
        .as_ref()
        .map(|secret| std::str::from_utf8(secret.expose()));
    let secret = secret
        .transpose()
        .map_err(|_| "auth.client_secret is not text")?;
    let default = match (secret, &discovered.token_auth_methods) {
        (None, _) => TokenAuth::None,
        (Some(_), Some(methods))
            if !has(methods, TokenAuth::Basic) && has(methods, TokenAuth::Post) =>
        {
            TokenAuth::Post
        }
        (Some(_), _) => TokenAuth::Basic,
    };
    let auth = knobs.token_auth.unwrap_or(default);
    if secret.is_none() && auth != TokenAuth::None {
        return Err("auth.token_auth_method needs auth.client_secret");
    }
    Ok(Client {
        id: given.id.to_string(),
        secret: secret.map(|secret| Zeroizing::new(secret.to_owned())),
        auth,
        secret_expires_at: None,
        management: None,
        origin: Origin::PreRegistered,
    })
}

fn has(methods: &[String], auth: TokenAuth) -> bool {
    methods.iter().any(|method| method == word(auth))
}

/// What RFC 7591, section 2 calls it.
fn word(auth: TokenAuth) -> &'static str {
    match auth {
        TokenAuth::None => "none",
        TokenAuth::Basic => "client_secret_basic",
        TokenAuth::Post => "client_secret_post",
    }
}

impl Client {
    fn of_metadata(url: &str) -> Self {
        Self {
            id: url.to_owned(),
            secret: None,
            auth: TokenAuth::None,
            secret_expires_at: None,
            management: None,
            origin: Origin::Metadata,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client")
            .field("id", &self.id)
            .field("auth", &self.auth)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Management {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Management(…)")
    }
}

#[cfg(test)]
mod tests;
