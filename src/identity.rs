//! Owns: evidence on a request becomes a [`Caller`]; nothing else makes one.
//! Imports: layers 0–2 (`policy` for the keys it read).
//! Never: falls back to another method when evidence fails, or keeps, logs or echoes a credential.
//! Fails as: [`Error`]; 401 for evidence, 403 for what the evidence does not allow.

mod caller;
mod error;
mod headers;
mod keys;
mod local;

use std::sync::Arc;

use http::HeaderMap;

pub use caller::Caller;
pub use error::Error;

use crate::{clock::Clock, policy::Snapshot};

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
        let caller = match self {
            Self::Local(local) => Caller::new(local.identify(headers)?, None),
            Self::Keys(keys) => keys.identify(headers, policy)?,
        };
        caller.named_by(headers)
    }
}

#[cfg(test)]
mod tests;
