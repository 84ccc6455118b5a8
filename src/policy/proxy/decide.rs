//! The decision: may this subject go there through the forward proxy?

use std::{sync::Arc, time::SystemTime};

use super::{AllowRule, Parent, TunnelTls, is_at, reports};
use crate::{
    address::{Leg, Rules, Target},
    policy::{
        AccessMode, Server, Snapshot,
        decide::{acts, may_use},
    },
    refusal::{Code, Refusal},
    subject::{Owner, Subject},
};

/// The name of what decides about hosts that no rule names.
const DEFAULT: &str = "default";

/// What a rule sees of a plain request; a tunnel shows nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The method, as it came.
    pub method: &'a str,
    /// Path and query, as they came, beginning with `/`.
    pub path: &'a str,
}

/// Proof that policy lets a subject go to a target through the forward proxy. Made only by [`decide_egress`].
#[derive(Clone, Debug)]
pub struct ProxyPermit {
    target: Target,
    /// `None` where no rule names the host, and such hosts are only reported.
    rule: Option<Arc<AllowRule>>,
    would_refuse: Option<Box<Denied>>,
    owner: Owner,
    generation: u64,
    addresses: Arc<Rules>,
    parent: Option<Arc<Parent>>,
}

/// A decided no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The rule that decided, as records name it.
    pub rule: Arc<str>,
    /// The refusal; its detail is for the log and for `explain`.
    pub refusal: Refusal,
}

impl ProxyPermit {
    /// Where it lets the subject go.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What a tunnel may carry.
    pub fn tls(&self) -> TunnelTls {
        self.rule.as_ref().map(|rule| rule.tls).unwrap_or_default()
    }

    /// The rule that decided, as records name it.
    pub fn rule(&self) -> &str {
        self.rule.as_ref().map_or(DEFAULT, |rule| &rule.origin)
    }

    /// What would be refused, were it not that a rule still only reports.
    pub fn would_refuse(&self) -> Option<&Denied> {
        self.would_refuse.as_deref()
    }

    /// On whose behalf.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The policy generation that decided.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The address rules of that generation, which nothing of a permit loosens.
    pub fn addresses(&self) -> &Arc<Rules> {
        &self.addresses
    }

    /// The leg that address rules see.
    pub fn leg(&self) -> Leg {
        Leg::Proxy
    }

    /// The proxy to go through, if there is one.
    pub fn parent(&self) -> Option<&Parent> {
        self.parent.as_deref()
    }
}

/// Decides whether `subject` may go to `target` through the forward proxy at `now`: `head` is that of a plain request,
/// and `None` for a tunnel.
///
/// # Errors
///
/// [`Denied`] names the rule that refuses; nobody is told whom a rule is for.
pub fn decide_egress(
    snapshot: &Snapshot,
    subject: &Subject,
    target: &Target,
    head: Option<Head<'_>>,
    now: SystemTime,
) -> Result<ProxyPermit, Denied> {
    let case = Case {
        snapshot,
        subject,
        target,
        now,
    };
    case.check_caller()?;
    let shut = case.check_shut()?;
    let (rule, would_refuse) = case.find_rule(head)?;
    Ok(ProxyPermit {
        target: target.clone(),
        rule: rule.cloned(),
        would_refuse: shut.or(would_refuse).map(Box::new),
        owner: subject.owner(),
        generation: snapshot.generation,
        addresses: snapshot.addresses.clone(),
        parent: snapshot.proxy.parent.clone(),
    })
}

struct Case<'a> {
    snapshot: &'a Snapshot,
    subject: &'a Subject,
    target: &'a Target,
    now: SystemTime,
}

impl<'a> Case<'a> {
    fn check_caller(&self) -> Result<(), Denied> {
        if !acts(self.subject) {
            let public = "the credential may not be used for the proxy";
            return Err(denied("scopes", Code::ScopeMissing, public));
        }
        let admins = self.snapshot.access_mode == AccessMode::Admins;
        if admins && !self.snapshot.admins.include(self.subject) {
            let refused = self.not_allowed("TOOLS_ACCESS_MODE = admins");
            return Err(refused.because("the caller is no admin"));
        }
        Ok(())
    }

    /// Refuses what a `[[deny]]` shuts; gives what one that only reports would refuse.
    fn check_shut(&self) -> Result<Option<Denied>, Denied> {
        let mut reported = None;
        for rule in &self.snapshot.proxy.deny {
            let who = &rule.who;
            if !rule.covers(self.target) || !who.of_tenant(self.subject) || !who.names(self.subject)
            {
                continue;
            }
            let refused = self.not_allowed(&rule.origin);
            let refused = refused.because(format!("`{}` shuts it", rule.host));
            if !reports(rule.report_until, self.now) {
                return Err(refused);
            }
            reported.get_or_insert(refused);
        }
        Ok(reported)
    }

    /// The rule that lets the request pass, and what it would refuse if it did more than report.
    fn find_rule(
        &self,
        head: Option<Head<'_>>,
    ) -> Result<(Option<&'a Arc<AllowRule>>, Option<Denied>), Denied> {
        let rules = self.snapshot.proxy.allow.iter();
        let about =
            |rule: &&Arc<AllowRule>| rule.covers(self.target) && rule.who.of_tenant(self.subject);
        let mut reported = None;
        let mut nearest: Option<Denied> = None;
        for rule in rules.filter(about) {
            let Err(refused) = self.admits(rule, head) else {
                return Ok((Some(rule), None));
            };
            if reported.is_none() && reports(rule.report_until, self.now) {
                reported = Some((Some(rule), Some(refused.clone())));
            }
            // A rule for the caller that refuses the request says more than one for somebody else.
            if nearest.is_none() || refused.refusal.code == Code::RequestNotAllowed {
                nearest = Some(refused);
            }
        }
        match (reported, nearest) {
            (Some(reported), _) => Ok(reported),
            (None, Some(nearest)) => Err(nearest),
            (None, None) => self.unnamed().map(|reported| (None, Some(reported))),
        }
    }

    fn admits(&self, rule: &AllowRule, head: Option<Head<'_>>) -> Result<(), Denied> {
        if !rule.who.names(self.subject) {
            let refused = self.not_allowed(&rule.origin);
            return Err(refused.because("its `who` does not name the caller"));
        }
        if rule.methods.is_empty() && rule.paths.is_empty() {
            return Ok(());
        }
        let refuse = |what: String| {
            let public = format!("`{}` is allowed, but not {what}", self.target);
            Err(denied(&rule.origin, Code::RequestNotAllowed, public))
        };
        let Some(head) = head else {
            return refuse("for a tunnel, in which requests cannot be seen".to_owned());
        };
        let methods = &rule.methods;
        if !methods.is_empty() && !methods.iter().any(|method| **method == *head.method) {
            return refuse(format!("with method `{}`", head.method.escape_debug()));
        }
        let listed = |path| rule.paths.iter().any(|pattern| pattern.matches(path));
        if !rule.paths.is_empty() && !unambiguous(head.path).is_some_and(listed) {
            return refuse("at this path".to_owned());
        }
        Ok(())
    }

    /// What becomes of a host that no rule names: a refusal, or its report.
    fn unnamed(&self) -> Result<Denied, Denied> {
        let target = self.target;
        if self.snapshot.addresses.is_own_listener(target) {
            let public = format!("`{target}` is Tollgate itself");
            return Err(denied(DEFAULT, Code::OwnAddress, public));
        }
        let mut servers = self.snapshot.servers.values();
        if let Some(server) = servers.find(|server| is_at(server, target)) {
            return Err(self.of_server(server));
        }
        let refused = self.not_allowed(DEFAULT).because(format!(
            "no rule names it; an [[allow]] table in egress.toml with host = \"{}\" would allow it",
            target.authority()
        ));
        let web = target.port() == target.scheme().default_port();
        if web && reports(self.snapshot.proxy.report_until, self.now) {
            return Ok(refused);
        }
        Err(refused)
    }

    /// A server's host, told to those who may use the server.
    fn of_server(&self, server: &Server) -> Denied {
        let detail = format!("it is the host of server `{}`", server.name);
        if !may_use(self.snapshot, self.subject, server) {
            return self.not_allowed(DEFAULT).because(detail);
        }
        let public = format!(
            "`{}` is server `{name}`, whose tools are called at /mcp/{name} and not through the proxy",
            self.target,
            name = server.name
        );
        denied(DEFAULT, Code::HostNotAllowed, public).because(detail)
    }

    fn not_allowed(&self, rule: &str) -> Denied {
        let public = format!(
            "`{}` is not allowed through the proxy for this caller",
            self.target
        );
        denied(rule, Code::HostNotAllowed, public)
    }
}

impl Denied {
    fn because(mut self, detail: impl Into<String>) -> Self {
        self.refusal = self.refusal.with_detail(detail);
        self
    }
}

fn denied(rule: &str, code: Code, public: impl Into<String>) -> Denied {
    Denied {
        rule: rule.into(),
        refusal: Refusal::new(code, public),
    }
}

/// The path without its query, unless servers may read it as another one: dot segments (plain, encoded, or with
/// parameters), encoded separators, what is encoded twice, and empty segments.
fn unambiguous(path: &str) -> Option<&str> {
    let path = path.split('?').next().unwrap_or_default();
    let lower = path.to_ascii_lowercase();
    let separators = ["//", "\\", "%2f", "%5c", "%25", "%00"];
    let dots = lower.replace("%2e", ".").replace("%3b", ";");
    let mut segments = dots.split('/');
    let climbs = segments.any(|segment| matches!(segment.split(';').next(), Some("." | "..")));
    let read_alike = path.starts_with('/') && !separators.iter().any(|part| lower.contains(part));
    (read_alike && !climbs).then_some(path)
}
