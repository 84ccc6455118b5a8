//! Where pins are kept: what a store does for a catalogue.

use std::{error, fmt, future::Future, pin::Pin, sync::Arc};

use super::Pinned;
use crate::{policy::Server, refusal::Code};

/// Keeps what is pinned of each server.
pub trait Ledger: Send + Sync + fmt::Debug {
    /// What is pinned of a server; `None` where nothing is.
    fn read<'a>(
        &'a self,
        server: &'a ServerKey,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Pinned>, LedgerError>> + Send + 'a>>;

    /// Puts `pinned` in place of version `expected`, `None` where nothing is there yet; durable on return. False where
    /// another version is there: somebody else was first.
    fn replace<'a>(
        &'a self,
        server: &'a ServerKey,
        expected: Option<u64>,
        pinned: &'a Pinned,
    ) -> Pin<Box<dyn Future<Output = Result<bool, LedgerError>> + Send + 'a>>;
}

/// Which server pins are of: one that was moved to another address is another server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerKey {
    /// Its name in the policy.
    pub name: Arc<str>,
    /// `scheme://host:port/path?query`, as registered.
    pub endpoint: Arc<str>,
}

impl ServerKey {
    /// The key of a registered server.
    pub fn of(server: &Server) -> Self {
        let endpoint = &server.endpoint;
        Self {
            name: server.name.clone(),
            endpoint: format!("{}{}", endpoint.target(), endpoint.path()).into(),
        }
    }
}

/// Why pins cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The store does not work.
    #[error("the pins of server `{server}` cannot be read or written")]
    Unavailable {
        /// The server.
        server: Arc<str>,
        /// Why.
        source: Box<dyn error::Error + Send + Sync>,
    },
    /// They are not as this gateway wrote them.
    #[error("the pins of server `{server}` were changed by something else than Tollgate")]
    Forged {
        /// The server.
        server: Arc<str>,
    },
}

impl LedgerError {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::Unavailable { .. } => Code::StoreUnavailable,
            Self::Forged { .. } => Code::PinsUnusable,
        }
    }
}
