//! Private grants: which host may resolve to private space, for which legs.

use std::{fmt, net::IpAddr, sync::Arc};

use ipnet::IpNet;

use super::{Host, Target, names};

/// What a request is for; private grants name legs. Prints as egress.toml spells it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Leg {
    /// Calls to the registered server of this name (`server:NAME`).
    Server(Arc<str>),
    /// OAuth requests for the server of this name (`oauth:NAME`).
    OAuth(Arc<str>),
    /// The forward proxy (`proxy`).
    Proxy,
    /// Keys and sign-in (`identity`).
    Identity,
    /// Webhooks (`webhook`).
    Webhook,
}

impl fmt::Display for Leg {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(name) => write!(out, "server:{name}"),
            Self::OAuth(name) => write!(out, "oauth:{name}"),
            Self::Proxy => out.write_str("proxy"),
            Self::Identity => out.write_str("identity"),
            Self::Webhook => out.write_str("webhook"),
        }
    }
}

/// The port of a private grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Exactly this one.
    Exact(u16),
    /// Every port; loopback hosts only.
    Any,
}

/// A `[[private]]` table: an exact host that may resolve to private space, for named legs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The exact host.
    pub host: Host,
    /// The port it opens.
    pub port: Port,
    /// Where the answer must lie; empty means anywhere that a grant can open.
    pub addresses: Vec<IpNet>,
    /// A static answer, in place of DNS.
    pub address: Option<IpAddr>,
    /// The legs it serves.
    pub legs: Vec<Leg>,
    /// How explanations name it, for example `egress.toml:12: [[private]]`.
    pub origin: Arc<str>,
}

impl Grant {
    /// Whether the grant is about this request.
    pub(super) fn serves(&self, leg: &Leg, target: &Target) -> bool {
        self.host == *target.host()
            && self.legs.contains(leg)
            && match self.port {
                Port::Exact(port) => port == target.port(),
                Port::Any => true,
            }
    }

    /// Whether `address` lies where the grant says its host does.
    pub(super) fn covers(&self, address: IpAddr) -> bool {
        let anywhere = self.address.is_none() && self.addresses.is_empty();
        anywhere
            || self.address == Some(address)
            || self.addresses.iter().any(|net| net.contains(&address))
    }

    /// Whether the grant opens `address`, which a range refuses. An ordinary name that leads to this machine must say
    /// so with `addresses` or `address`: whoever answers for the name would otherwise reach every local service.
    pub(super) fn opens(&self, address: IpAddr) -> bool {
        let local = reaches_this_machine(address);
        let expected = match &self.host {
            Host::Ip(_) => true,
            Host::Name(name) => {
                names::is_localhost(name) || !self.addresses.is_empty() || self.address.is_some()
            }
        };
        self.covers(address) && (expected || !local) && (local || self.port != Port::Any)
    }
}

/// Loopback, and `0.0.0.0/8`, which Linux connects to loopback.
pub(super) fn reaches_this_machine(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback() || v4.octets()[0] == 0,
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unspecified(),
    }
}
