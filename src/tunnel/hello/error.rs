//! Why a tunnel does not begin with the ClientHello of its host.

use super::{MAX_HELLO, MAX_RECORDS};
use crate::{
    address::{Host, Malformed, Name},
    refusal::{Code, Refusal},
};

/// A first flight that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// The first bytes are no TLS handshake.
    #[error("the tunnel does not begin with TLS")]
    NotTls,
    /// It breaks the syntax.
    #[error("the TLS ClientHello is malformed: {0}")]
    Malformed(&'static str),
    /// It is too long, or spread over too many records.
    #[error(
        "the TLS ClientHello is longer than {MAX_HELLO} bytes, or its records than {MAX_RECORDS}"
    )]
    Long,
    /// An extension stands twice.
    #[error("the TLS ClientHello has extension {0} more than once")]
    Doubled(usize),
    /// It asks for several names.
    #[error("the TLS ClientHello asks for more than one server name")]
    SeveralNames,
    /// What it asks for is no host name.
    #[error("the TLS server name is refused: {0}")]
    BadName(Malformed),
    /// It asks for an address.
    #[error("the TLS server name is an address")]
    AddressName,
    /// It asks for no name.
    #[error("the TLS ClientHello asks for no server name")]
    NoName,
    /// It asks for a name in an encrypted ClientHello only.
    #[error("the TLS ClientHello shows no server name, only an encrypted one")]
    OnlyEncrypted,
    /// It asks for another name than the tunnel's.
    #[error("TLS asks for `{name}` in a tunnel to `{host}`")]
    Mismatch {
        /// The name in the clear.
        name: Name,
        /// The host of the tunnel.
        host: Host,
    },
}

impl HelloError {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::NotTls => Code::NotTls,
            Self::NoName | Self::OnlyEncrypted => Code::SniMissing,
            Self::Mismatch { .. } => Code::SniMismatch,
            Self::Malformed(_)
            | Self::Long
            | Self::Doubled(_)
            | Self::SeveralNames
            | Self::BadName(_)
            | Self::AddressName => Code::HelloInvalid,
        }
    }
}

impl From<HelloError> for Refusal {
    fn from(error: HelloError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
