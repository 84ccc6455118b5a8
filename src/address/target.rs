//! A destination: scheme, host and port, parsed once.

use super::{Host, Name};

/// The schemes that Tollgate sends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

/// Where a request goes: the only thing that `egress` resolves. Made only by this file's parsers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    scheme: Scheme,
    host: Host,
    port: u16,
}

impl Target {
    /// The scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host, as it will stand in `Host`, SNI and certificate verification.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port, never 0.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Reads a URL that an operator wrote (IDN accepted and stored as its A-label).
    pub fn from_operator(_url: &str) -> Result<Self, Malformed> {
        todo!()
    }

    /// Reads a URL that came over the wire: ASCII only.
    pub fn from_wire(_url: &str) -> Result<Self, Malformed> {
        todo!()
    }

    /// Reads a CONNECT authority, `host:port`.
    pub fn from_authority(_authority: &str) -> Result<Self, Malformed> {
        todo!()
    }
}

/// Text that names no destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub(super) String);

impl Name {}
