//! What `egress.toml` says of the forward proxy: where it goes, and for whom.

mod check;
mod decide;
mod file;
mod lint;
mod pattern;
#[cfg(test)]
mod tests;
mod tunnels;

use std::{sync::Arc, time::SystemTime};

use super::{Pattern, Server};
use crate::{
    address::{Host, Scheme, Target},
    subject::Subject,
};

pub use decide::{Denied, Head, ProxyPermit, decide_egress};
pub use lint::lints;
pub use pattern::HostPattern;
pub use tunnels::TunnelLimits;

pub(super) use check::{around_approvals, parent, unnamed_tenants};
pub(super) use file::{Draft, Drafts, read};

/// The forward proxy's rules, compiled. What no rule allows is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxy {
    /// `[[allow]]`, in the order of the file: the first that lets a request pass decides how it passes.
    pub allow: Vec<Arc<AllowRule>>,
    /// `[[deny]]`: wins over every `[[allow]]`.
    pub deny: Vec<DenyRule>,
    /// `report_until` of the file: hosts that no rule names pass until then, and are recorded as `would_refuse`.
    pub report_until: Option<SystemTime>,
    /// `[egress.parent]`.
    pub parent: Option<Arc<Parent>>,
    /// `[tunnels]`.
    pub tunnels: TunnelLimits,
}

/// The proxy that the forward proxy goes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Where it is; plain HTTP.
    pub target: Target,
    /// Whether it resolves names itself, so that no address is judged here and none is pinned.
    pub resolves: bool,
}

/// An `[[allow]]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowRule {
    /// Where it leads; a pattern without a port means the scheme's own.
    pub host: HostPattern,
    /// Only plain requests, or only tunnels; `None` is both.
    pub scheme: Option<Scheme>,
    /// Whom it is for; its tenants are always named.
    pub who: Who,
    /// What a tunnel may carry.
    pub tls: TunnelTls,
    /// Methods of plain requests; empty is every one.
    pub methods: Vec<Arc<str>>,
    /// Paths of plain requests, without their queries; empty is every one.
    pub paths: Vec<Pattern>,
    /// Until then, what `who`, `methods` and `paths` refuse passes and is recorded as `would_refuse`.
    pub report_until: Option<SystemTime>,
    /// Whether it may lead to the host of a registered server.
    pub also_server: bool,
    /// How records and explanations name it, for example `egress.toml:12: [[allow]]`.
    pub origin: Arc<str>,
}

/// A `[[deny]]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenyRule {
    /// What it shuts; a pattern without a port means every port.
    pub host: HostPattern,
    /// Whom it is for; without tenants it is for those of every tenant.
    pub who: Who,
    /// Until then it refuses nothing, and what it would refuse is recorded as `would_refuse`.
    pub report_until: Option<SystemTime>,
    /// How records and explanations name it.
    pub origin: Arc<str>,
}

/// `tls`: what a tunnel may carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TunnelTls {
    /// TLS to the host that the tunnel was asked for, as its ClientHello says.
    #[default]
    Pass,
    /// Anything.
    Opaque,
}

/// `who`: whom a rule is for. Every list that is not empty has to name the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// Tenants.
    pub tenants: Vec<Arc<str>>,
    /// Users.
    pub users: Vec<Arc<str>>,
    /// Groups, of which the caller is in one.
    pub groups: Vec<Arc<str>>,
    /// Agents.
    pub agents: Vec<Pattern>,
}

impl AllowRule {
    /// Whether it is about `target`, whoever asks.
    pub fn covers(&self, target: &Target) -> bool {
        self.host.covers(target) && self.scheme.is_none_or(|scheme| scheme == target.scheme())
    }

    /// The schemes and ports that it leads to.
    fn places(&self) -> impl Iterator<Item = (Scheme, u16)> {
        [Scheme::Http, Scheme::Https]
            .into_iter()
            .filter(|scheme| self.scheme.is_none_or(|only| only == *scheme))
            .map(|scheme| {
                let port = self.host.port();
                (scheme, port.unwrap_or_else(|| scheme.default_port()))
            })
    }

    /// Whether it leads to this port of a host that it covers.
    pub(super) fn on_port(&self, port: u16) -> bool {
        self.places().any(|(_, own)| own == port)
    }

    /// Whether it could lead to `server` past the approvals of its tools. Ports tell services of one machine apart;
    /// of another machine they are as likely the same service.
    fn leads_to(&self, server: &Server) -> bool {
        let target = server.endpoint.target();
        self.host.covers_host(target.host())
            && (!target.host().is_loopback() || self.on_port(target.port()))
    }
}

impl DenyRule {
    fn covers(&self, target: &Target) -> bool {
        self.host.covers_host(target.host())
            && self.host.port().is_none_or(|port| port == target.port())
    }
}

impl Who {
    /// Whether the caller's tenant is one of its. Nothing lets a caller pass this wall.
    fn of_tenant(&self, subject: &Subject) -> bool {
        self.tenants.is_empty() || self.tenants.contains(&subject.tenant)
    }

    /// Whether the other lists name the caller.
    fn names(&self, subject: &Subject) -> bool {
        let users = self.users.is_empty() || self.users.contains(&subject.user);
        let mut groups = subject.groups.iter();
        let groups = self.groups.is_empty() || groups.any(|group| self.groups.contains(group));
        let mut agents = self.agents.iter();
        let agents = self.agents.is_empty() || agents.any(|agent| agent.matches(&subject.agent));
        users && groups && agents
    }

    /// Whether it says nothing but the tenants.
    fn is_everyone(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty() && self.agents.is_empty()
    }

    /// Whether everyone that `other` names is named here, too.
    fn includes(&self, other: &Self) -> bool {
        words_include(&self.tenants, &other.tenants)
            && words_include(&self.users, &other.users)
            && words_include(&self.groups, &other.groups)
            && patterns_include(&self.agents, &other.agents)
    }
}

/// Whether `own` names all that `others` name; an empty list names everything.
fn words_include(own: &[Arc<str>], others: &[Arc<str>]) -> bool {
    own.is_empty() || !others.is_empty() && others.iter().all(|other| own.contains(other))
}

/// Whether `own` covers all that `others` cover; an empty list covers everything.
fn patterns_include(own: &[Pattern], others: &[Pattern]) -> bool {
    let covered = |other: &Pattern| own.iter().any(|own| own.includes(other));
    own.is_empty() || !others.is_empty() && others.iter().all(covered)
}

/// Whether a request to `target` would end at the host of `server`, or so nearly that it is taken for it.
fn is_at(server: &Server, target: &Target) -> bool {
    let own = server.endpoint.target();
    let apart = own.host().is_loopback() && own.port() != target.port();
    own.host() == target.host() && !apart
}

/// Whether a rule is still only reporting.
fn reports(until: Option<SystemTime>, now: SystemTime) -> bool {
    until.is_some_and(|until| now < until)
}

/// Host and port as a destination; `None` where they cannot be one.
fn destination(scheme: Scheme, host: &Host, port: u16) -> Option<Target> {
    Target::from_operator(&format!("{}://{host}:{port}", scheme.as_str())).ok()
}
