//! Flows that are under way: each is found by the digest of its state, once.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::{
    connect::{
        Error, GrantKey, Inner, Key, Row,
        kept::{self, Flow, grant::Tried},
        provider::{discovery::Discovered, register::Client},
        terms::FLOW,
    },
    id,
};

/// Flows of one person to one server at a time.
const AT_ONCE: u32 = 10;
/// Digits of a cookie's name.
const NAME: usize = 8;

/// What a flow was begun with; nothing of it is asked for again when the browser comes back.
#[derive(Serialize, Deserialize)]
pub(super) struct Pending {
    /// The server's registered URL.
    pub(super) endpoint: String,
    /// Issuer and endpoints.
    pub(super) discovered: Discovered,
    /// What was pinned then, where the person confirmed something else.
    pub(super) changed_from: Option<String>,
    pub(super) client: Client,
    pub(super) redirect_uri: String,
    /// As it was sent.
    pub(super) resource: Option<String>,
    pub(super) scopes: Vec<String>,
    /// Allowed already.
    pub(super) return_to: Option<String>,
    /// PKCE's.
    pub(super) verifier: Zeroizing<String>,
    /// SHA-256 of the browser's cookie.
    pub(super) cookie: [u8; 32],
    /// What a server wanted besides, and how often that was asked for, this time included.
    pub(super) tried: Vec<Tried>,
}

/// The two secrets of a flow: one travels through the provider, the other stays in the browser.
pub(super) struct Secrets {
    pub(super) state: Zeroizing<String>,
    pub(super) cookie: Zeroizing<String>,
}

impl Secrets {
    pub(super) fn new() -> Self {
        Self {
            state: token(),
            cookie: token(),
        }
    }

    /// The name of the cookie, without any prefix.
    pub(super) fn cookie_name(&self) -> String {
        cookie_name(&digest(&self.state))
    }
}

/// A flow that was found. It is not used up yet.
pub(super) struct Found {
    key: Key,
    /// Whose, and to which server.
    pub(super) flow: GrantKey,
    pub(super) pending: Pending,
}

/// Keeps a flow.
///
/// # Errors
///
/// As many are under way as one person may have, or the database does not work.
pub(super) async fn begin(
    inner: &Inner,
    key: GrantKey,
    secrets: &Secrets,
    pending: &Pending,
) -> Result<(), Error> {
    let under_way = inner.records.flows(&key).await?;
    if under_way.is_some_and(|(count, _)| count >= AT_ONCE) {
        return Err(Error::Transient {
            server: key.server,
            what: format!("{AT_ONCE} sign-ins to it are under way; finish one, or wait 10 minutes"),
        });
    }
    let place = Key::Pending {
        state: digest(&secrets.state),
    };
    let flow = Flow {
        key,
        expires_at: inner.now() + FLOW.as_secs().cast_signed(),
    };
    let new = kept::replace(inner, &place, None, pending, Some(flow)).await?;
    new.then_some(()).ok_or(Error::State)
}

/// The flow of `state`. It stays, so that what is found wrong about an answer does not end it for the right one.
///
/// # Errors
///
/// There is none, it has ended, or the database does not work.
pub(super) async fn find(inner: &Inner, state: &str) -> Result<Found, Error> {
    let key = Key::Pending {
        state: digest(state),
    };
    let row = inner.records.read(&key).await?.ok_or(Error::State)?;
    let ended = row.expires_at.is_none_or(|end| end <= inner.now());
    if ended {
        return Err(Error::State);
    }
    let pending = kept::open(inner, &key, &row).ok_or(Error::State)?;
    let Row { flow, .. } = row;
    Ok(Found {
        key,
        flow: flow.ok_or(Error::State)?,
        pending,
    })
}

impl Found {
    /// Whether the browser that came back is the one that began.
    pub(super) fn is_of_browser(&self, cookies: &[(String, String)]) -> bool {
        let Key::Pending { state } = &self.key else {
            return false;
        };
        let name = cookie_name(state);
        // Digests are compared, so how long it takes says nothing about the value.
        cookies
            .iter()
            .any(|(own, value)| *own == name && digest(value) == self.pending.cookie)
    }

    /// Uses the flow up: of several who try, one gets it.
    ///
    /// # Errors
    ///
    /// Another was faster, or the database does not work.
    pub(super) async fn take(self, inner: &Inner) -> Result<(GrantKey, Pending), Error> {
        inner.records.take(&self.key).await?.ok_or(Error::State)?;
        Ok((self.flow, self.pending))
    }
}

/// SHA-256.
pub(super) fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

fn cookie_name(state: &[u8; 32]) -> String {
    let mut name = id::hex(state);
    name.truncate(NAME);
    name
}

/// 256 random bits.
fn token() -> Zeroizing<String> {
    let bytes = Zeroizing::new(id::random::<32>());
    Zeroizing::new(BASE64_URL_SAFE_NO_PAD.encode(*bytes))
}
