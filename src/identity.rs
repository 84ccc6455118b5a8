//! Owns: evidence on a request becomes a [`Caller`]; nothing else makes one.
//! Imports: layers 0–2 (`policy` for the keys it read).
//! Never: falls back to another method when evidence fails, or keeps, logs or echoes a credential.
//! Fails as: [`Error`]; 401 for evidence, 403 for what the evidence does not allow.

mod browser;
mod caller;
mod error;
mod headers;
mod keys;
mod local;

use std::sync::Arc;

use http::HeaderMap;

pub use browser::{
    Browser, Browsers, Invitation, Kept, LinkRow, LoginError, SessionRow, Sessions, SessionsError,
    SignIn,
};
pub use caller::Caller;
pub use error::Error;
use headers::Named;

use crate::{
    clock::Clock,
    policy::Snapshot,
    subject::{Owner, Subject},
};

/// The agent's name where a person acts in a browser.
const BROWSER: &str = "browser";

/// How callers are told apart; one of these per process (design: identity).
#[derive(Clone)]
pub enum Identity {
    /// One fixed user, who needs no credential.
    Local(local::Local),
    /// Agent keys, `Authorization: Bearer tg_…`.
    Keys(keys::Keys),
}

impl Identity {
    /// Everyone who reaches the listener is `user` of `tenant`.
    pub fn local(user: &str, tenant: &str) -> Self {
        Self::Local(local::Local::new(user, tenant))
    }

    /// Callers present one of the policy's keys; `clock` tells whether it has expired.
    pub fn keys(clock: Arc<dyn Clock>) -> Self {
        Self::Keys(keys::Keys::new(clock))
    }

    /// The method's name, as it stands in `[identity]`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Local(_) => "local",
            Self::Keys(_) => "keys",
        }
    }

    /// Judges the evidence on a request's head.
    ///
    /// # Errors
    ///
    /// Evidence that is missing, doubled, unknown or expired, and acting for a user without leave.
    pub fn identify(&self, headers: &HeaderMap, policy: &Snapshot) -> Result<Caller, Error> {
        let named = Named::of(headers);
        let caller = match self {
            Self::Local(local) => Caller::local(local.identify(headers, named)?),
            Self::Keys(keys) => keys.identify(headers, named, policy)?,
        };
        caller.named_by(named)
    }

    /// Judges the credential of a request to the forward proxy: an agent key, and the user that it acts for. Of its
    /// `headers` only those that name conversation and turn are read; the others are the request's own.
    ///
    /// # Errors
    ///
    /// As [`Identity::identify`].
    pub fn identify_proxied(
        &self,
        key: Option<&[u8]>,
        user: Option<&str>,
        headers: &HeaderMap,
        policy: &Snapshot,
    ) -> Result<Caller, Error> {
        let caller = match (self, key) {
            (Self::Local(local), None) => Caller::local(local.subject().clone()),
            // As on the agents listener: what nobody judges must not look as if it had been accepted.
            (Self::Local(_), Some(_)) => return Err(Error::NotJudged),
            (Self::Keys(_), None) => return Err(Error::Missing),
            (Self::Keys(keys), Some(key)) => keys.identify_proxied(key, user, policy)?,
        };
        caller.named_by(Named::of(headers))
    }

    /// Judges a caller again under another policy, or at a later time: for what lasts longer than a request.
    ///
    /// # Errors
    ///
    /// The key is gone or has expired, or no longer says what it said.
    pub fn again(&self, caller: &Caller, policy: &Snapshot) -> Result<Caller, Error> {
        match self {
            Self::Local(_) => Ok(caller.clone()),
            Self::Keys(keys) => keys.again(caller, policy),
        }
    }

    /// Whether anybody calls as this user, or signs in.
    pub fn knows(&self, owner: &Owner, policy: &Snapshot) -> bool {
        self.person(owner, policy).is_some()
    }

    /// The person of this name, if it is somebody: whom a browser stands for.
    fn person(&self, owner: &Owner, policy: &Snapshot) -> Option<Subject> {
        match self {
            Self::Local(local) => local.person(owner),
            Self::Keys(keys) => keys.person(owner, policy),
        }
    }
}

#[cfg(test)]
mod tests;
