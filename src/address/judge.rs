//! The judge: every address of an answer, against the table and the operator's grants.

use std::{net::IpAddr, sync::Arc};

use ipnet::IpNet;

use super::{Host, Name, Target};

/// What a request is for; private grants name legs.
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

/// A declared NAT64 prefix (RFC 6052).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nat64Prefix(pub IpNet);

/// The operator's address rules, compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// `[[private]]` and `TOOLS_PRIVATE_NETWORK_ALLOWLIST`.
    pub grants: Vec<Grant>,
    /// `nat64_prefixes`.
    pub nat64: Vec<Nat64Prefix>,
    /// `fake_ip_ranges`.
    pub fake_ip: Vec<IpNet>,
    /// Addresses of this host's interfaces.
    pub own_addresses: Vec<IpAddr>,
    /// Where this process listens.
    pub own_listeners: Vec<std::net::SocketAddr>,
}

/// An address that may be dialled. Made only by the judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JudgedAddr {
    address: IpAddr,
    port: u16,
}

impl JudgedAddr {
    /// Where to connect.
    pub fn socket(&self) -> std::net::SocketAddr {
        (self.address, self.port).into()
    }
}

/// A whole answer, judged: every address may be dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// In the order of the answer.
    pub addresses: Vec<JudgedAddr>,
    /// Which grant opened it, where one was needed.
    pub grant: Option<Arc<str>>,
    /// False where the address cannot be judged (fake-ip ranges).
    pub pinned: bool,
}

/// A destination that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Blocked {
    /// The code of the refusal.
    pub code: crate::refusal::Code,
    /// The name of the rule or range that decided.
    pub rule: &'static str,
    /// The address that decided, if one did.
    pub address: Option<IpAddr>,
    /// What was found and which setting would open it.
    pub reason: String,
}

impl Rules {
    /// Judges a target before it is resolved: its name, or its literal address. `Some` is the final answer
    /// (a literal, a static grant, a granted `localhost`); `None` means: resolve, then [`Rules::judge`].
    pub fn before_resolving(
        &self,
        _leg: &Leg,
        _target: &Target,
    ) -> Result<Option<Judged>, Blocked> {
        todo!()
    }

    /// Judges the whole answer for `target`; one forbidden address refuses all of it.
    pub fn judge(
        &self,
        _leg: &Leg,
        _target: &Target,
        _answer: &[IpAddr],
    ) -> Result<Judged, Blocked> {
        todo!()
    }
}

#[expect(dead_code)]
fn unused(_: &Name) {}
