//! The sealed part of a connection: its tokens, and everything that says where they may go.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::{
    catalog::ServerKey,
    connect::{
        GrantRow,
        provider::register::{Client, Origin},
    },
    policy::Server,
    vault::{Credential, Kid, Unopened, Vault},
};

/// The length of a payload tells nothing finer than this.
const GRAIN: usize = 256;

/// Seconds for which a token that was refused is not shown again. A server that was wrong for a moment shuts nobody out
/// for longer.
const REST: i64 = 60;

/// What is sealed of a connection. Times are Unix seconds by this machine's clock.
#[derive(Serialize, Deserialize)]
pub(in crate::connect) struct Payload {
    /// The access token.
    pub(in crate::connect) access: Zeroizing<String>,
    /// The refresh token.
    pub(in crate::connect) refresh: Option<Zeroizing<String>>,
    /// When the access token ends; absent where the provider did not say.
    pub(in crate::connect) expires_at: Option<i64>,
    /// When the refresh token ends, where the provider said so.
    pub(in crate::connect) refresh_expires_at: Option<i64>,
    /// What was asked for.
    pub(in crate::connect) requested_scopes: Vec<String>,
    /// What was granted.
    pub(in crate::connect) granted_scopes: Vec<String>,
    /// The issuer, byte for byte.
    pub(in crate::connect) issuer: String,
    /// Where it is refreshed.
    pub(in crate::connect) token_endpoint: String,
    /// Where it is revoked.
    pub(in crate::connect) revocation_endpoint: Option<String>,
    /// The client it was issued to.
    pub(in crate::connect) client: Client,
    /// `resource` as it was sent, byte for byte; absent where none was sent.
    pub(in crate::connect) resource_sent: Option<String>,
    /// The registered URL that it is for ([`endpoint`]).
    pub(in crate::connect) endpoint: String,
    /// When the tokens came.
    pub(in crate::connect) obtained_at: i64,
    /// What the server wants besides.
    pub(in crate::connect) wanted: Vec<String>,
    /// What was asked for because a server wanted it.
    pub(in crate::connect) tried: Vec<Tried>,
    /// When a server refused the access token and there was no other to try; absent otherwise.
    pub(in crate::connect) refused_at: Option<i64>,
}

/// Scopes that were asked for because a server wanted them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::connect) struct Tried {
    /// In order.
    pub(in crate::connect) scopes: Vec<String>,
    /// How often.
    pub(in crate::connect) times: u8,
}

/// What a connection, or the beginning of one, was made with.
pub(in crate::connect) struct Made<'a> {
    /// The server's registered URL.
    pub(in crate::connect) endpoint: &'a str,
    pub(in crate::connect) issuer: &'a str,
    pub(in crate::connect) token_endpoint: &'a str,
    pub(in crate::connect) client: &'a Client,
}

impl Made<'_> {
    /// Why the server's file, as it is now, wants no connection that was made so, where it does not: a word of the table of
    /// [`crate::connect::Error::Reconnect`]. Of what the file leaves open, anything is wanted.
    pub(in crate::connect) fn unwanted(&self, server: &Server) -> Option<&'static str> {
        if self.endpoint != endpoint(server) {
            return Some("origin_changed");
        }
        let knobs = server.auth.oauth()?;
        let issuers = [&knobs.issuer, &knobs.trusted_issuer];
        let is_named = issuers
            .into_iter()
            .flatten()
            .any(|own| **own == *self.issuer);
        let fixed = knobs.endpoints.as_ref();
        if knobs.issuer.is_some() && !is_named
            || fixed.is_some_and(|fixed| *fixed.token != *self.token_endpoint)
        {
            return Some("issuer_changed");
        }
        let own = knobs.client.as_ref().map(|own| &*own.id);
        let is_own = own == Some(&*self.client.id);
        let was_own = self.client.origin == Origin::PreRegistered;
        (!is_own && (own.is_some() || was_own)).then_some("client_changed")
    }
}

impl Payload {
    /// As it was made.
    pub(in crate::connect) fn made(&self) -> Made<'_> {
        Made {
            endpoint: &self.endpoint,
            issuer: &self.issuer,
            token_endpoint: &self.token_endpoint,
            client: &self.client,
        }
    }

    /// Whether the access token is the credential with this digest.
    pub(in crate::connect) fn shows(&self, digest: &[u8; 32]) -> bool {
        let own = Credential::bearer(self.access.as_bytes());
        own.is_some_and(|own| own.digest() == digest)
    }

    /// Whether it can be refreshed: there is a refresh token, and it has not ended.
    pub(in crate::connect) fn refreshable(&self, now: i64) -> bool {
        self.refresh.is_some() && self.refresh_expires_at.is_none_or(|end| now < end)
    }

    /// Whether the access token was refused so lately that it is not shown to the server. A time to come was left behind
    /// by a clock.
    pub(in crate::connect) fn rests(&self, now: i64) -> bool {
        self.refused_at
            .is_some_and(|at| (at..at.saturating_add(REST)).contains(&now))
    }

    /// By what two refresh tokens are compared where neither may be kept; absent without one.
    pub(in crate::connect) fn refresh_digest(&self) -> Option<[u8; 32]> {
        let token = self.refresh.as_ref()?;
        Some(Sha256::digest(token.as_bytes()).into())
    }
}

/// Seals `payload` for `row`, whose own sealed part does not count. Its length is a multiple of 256 bytes and an overhead
/// that is always the same.
pub(in crate::connect) fn seal(vault: &Vault, row: &GrantRow, payload: &Payload) -> Vec<u8> {
    vault.seal(&row.binding(), &written(payload))
}

/// The key that something just sealed is sealed under.
pub(in crate::connect) fn kid(sealed: &[u8]) -> Kid {
    Kid::of(sealed).expect("what was sealed names its key")
}

/// Opens the sealed part of `row`.
///
/// # Errors
///
/// It was changed, moved, or put back; or it is sealed under a key that is not there. One that opens and cannot be read
/// counts as changed.
pub(in crate::connect) fn open(vault: &Vault, row: &GrantRow) -> Result<Payload, Unopened> {
    let opened = vault.open(&row.binding(), &row.sealed)?;
    serde_json::from_slice(opened.expose()).map_err(|_| Unopened::Form)
}

/// How a server's registered URL stands in [`Payload::endpoint`].
pub(in crate::connect) fn endpoint(server: &Server) -> String {
    ServerKey::of(server).endpoint.to_string()
}

/// The payload as JSON, with spaces after it. The buffer never grows, so that no copy stays behind.
fn written(payload: &Payload) -> Zeroizing<Vec<u8>> {
    let mut length = Length(0);
    serde_json::to_writer(&mut length, payload).expect("plain data is counted");
    let padded = length.0.next_multiple_of(GRAIN);
    let mut plain = Zeroizing::new(Vec::with_capacity(padded));
    serde_json::to_writer(&mut *plain, payload).expect("plain data is written to memory");
    plain.resize(padded, b' ');
    plain
}

/// Counts what is written, and keeps none of it.
struct Length(usize);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
