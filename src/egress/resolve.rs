//! Names to addresses: what is asked, and what counts as an answer.

mod dns;

use std::{fmt, net::IpAddr, sync::Arc};

pub use dns::{Dns, DnsSettings, DnsSetupError, Patience, Zone};
use futures_util::future::BoxFuture;

use crate::{address::Name, refusal::Code};

/// The most addresses of one answer.
pub(super) const MAX_ADDRESSES: usize = 32;

/// Where addresses of names come from.
pub trait Resolve: Send + Sync {
    /// Every address of `name`, both families, in the order in which they should be tried.
    fn resolve<'a>(&'a self, name: &'a Name) -> BoxFuture<'a, Result<Answer, ResolveError>>;
}

/// A whole answer; cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// At least one address, at most 32.
    pub addresses: Arc<[IpAddr]>,
    /// A family that could not be asked and is therefore neither judged nor dialled.
    pub left_out: Option<LeftOut>,
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `A` records.
    V4,
    /// `AAAA` records.
    V6,
}

/// A family without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Which one.
    pub family: Family,
    /// What happened to its question.
    pub why: &'static str,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = match self.family {
            Family::V4 => "A",
            Family::V6 => "AAAA",
        };
        write!(out, "{records} left out: {}", self.why)
    }
}

/// A name without a usable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The name servers say that there is no such name (NXDOMAIN).
    #[error("`{0}` does not exist")]
    NoName(Name),
    /// The name exists and has no address.
    #[error("`{0}` has no address")]
    NoAddress(Name),
    /// The name servers answered with a failure, or not at all.
    #[error("the name servers could not resolve `{0}`")]
    Failed(Name),
    /// No answer came in time.
    #[error("the name servers did not answer for `{0}` in time")]
    Timeout(Name),
    /// The chain of aliases is too long.
    #[error("`{0}` is an alias of an alias too often: more than 8 CNAME records")]
    TooManyAliases(Name),
    /// The answer is too long.
    #[error("`{0}` has more than {MAX_ADDRESSES} addresses")]
    TooManyAddresses(Name),
}

impl ResolveError {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::NoName(_) | Self::NoAddress(_) => Code::NameUnresolved,
            Self::Failed(_) | Self::TooManyAliases(_) | Self::TooManyAddresses(_) => {
                Code::DnsFailed
            }
            Self::Timeout(_) => Code::DnsTimeout,
        }
    }
}
