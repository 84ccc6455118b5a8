//! What cannot be known of a server's tools.

use std::sync::Arc;

use super::{LedgerError, MAX_BYTES, MAX_ITEMS};
use crate::{
    refusal::{Code, Refusal},
    table::Fault,
};

/// [`MAX_BYTES`] as it is said.
const MIB: usize = MAX_BYTES >> 20;

/// Why nothing of a server is offered, or a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A list grew past the bounds.
    #[error(
        "server `{0}` offers more than {MAX_ITEMS} definitions, or more than {MIB} MiB of them"
    )]
    TooLarge(Arc<str>),
    /// What is pinned cannot be read or written.
    #[error("what is pinned of server `{server}` cannot be used")]
    Ledger {
        /// The server.
        server: Arc<str>,
        /// Why.
        source: LedgerError,
    },
    /// The pins file says nothing that can be used.
    #[error("the pins file of server `{server}` cannot be used: {fault}")]
    File {
        /// The server.
        server: Arc<str>,
        /// What is wrong with it.
        fault: Fault,
    },
    /// Others change the same pins faster than this process does.
    #[error("the pins of server `{0}` were changed by somebody else at the same time")]
    Contended(Arc<str>),
    /// Nothing of this name was seen.
    #[error("nothing named `{name}` was seen of server `{server}`, or is pinned")]
    Unseen {
        /// The server.
        server: Arc<str>,
        /// The name.
        name: Arc<str>,
    },
    /// Something else than what was chosen is seen under this name.
    #[error(
        "`{name}` of server `{server}` is seen with the digest {found}, which does not begin with `{digest}`; look at it again"
    )]
    Other {
        /// The server.
        server: Arc<str>,
        /// The name.
        name: Arc<str>,
        /// What the digest should begin with.
        digest: String,
        /// The digest that is seen.
        found: String,
    },
}

impl Error {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::TooLarge(_) => Code::CatalogTooLarge,
            Self::Ledger { source, .. } => source.code(),
            Self::File { .. } => Code::PinsUnusable,
            Self::Contended(_) => Code::StoreUnavailable,
            Self::Unseen { .. } => Code::ToolUnknown,
            Self::Other { .. } => Code::Drifted,
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let refusal = Self::new(error.code(), error.to_string());
        match std::error::Error::source(&error) {
            Some(source) => refusal.with_detail(source.to_string()),
            None => refusal,
        }
    }
}
