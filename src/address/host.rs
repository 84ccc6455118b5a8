//! Host names and literals, in the only form that is compared.

use std::{fmt, net::IpAddr, sync::Arc};

/// A DNS name: lower-case A-labels, letters, digits, `-` and `_`, no trailing dot, at most 253 octets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(pub(super) Arc<str>);

impl Name {
    /// The text, without a trailing dot.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// What stands where a URL names its host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name, to be resolved.
    Name(Name),
    /// An address literal.
    Ip(IpAddr),
}
