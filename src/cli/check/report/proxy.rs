//! What a policy lets the forward proxy do, rule by rule.

use std::{fmt::Display, time::SystemTime};

use serde::Serialize;

use crate::policy::{AllowRule, DenyRule, Parent, Proxy, TunnelTls, Who};

/// What `--json` says of the proxy.
#[derive(Debug, Serialize)]
pub(super) struct ProxyReport {
    rules: Vec<RuleReport>,
    /// Until when hosts that no rule names are only reported.
    report_until: Option<String>,
    parent: Option<ParentReport>,
}

#[derive(Debug, Default, Serialize)]
struct RuleReport {
    effect: &'static str,
    host: String,
    scheme: Option<&'static str>,
    tenants: Vec<String>,
    users: Vec<String>,
    groups: Vec<String>,
    agents: Vec<String>,
    tls: Option<&'static str>,
    methods: Vec<String>,
    paths: Vec<String>,
    report_until: Option<String>,
    also_server: bool,
    origin: String,
}

#[derive(Debug, Serialize)]
struct ParentReport {
    url: String,
    resolves: bool,
}

impl ProxyReport {
    pub(super) fn new(proxy: &Proxy) -> Self {
        let allowed = proxy.allow.iter().map(|rule| RuleReport::allow(rule));
        let denied = proxy.deny.iter().map(RuleReport::deny);
        Self {
            rules: allowed.chain(denied).collect(),
            report_until: proxy.report_until.map(written),
            parent: proxy.parent.as_deref().map(ParentReport::new),
        }
    }

    /// The lines for a person; none where there is nothing to tell.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let rules = self.rules.iter().map(RuleReport::line);
        let rest = self.report_until.iter();
        let rest =
            rest.map(|until| format!("hosts without a rule are only reported until {until}"));
        rules.chain(rest)
    }

    /// The parent proxy, for a person.
    pub(super) fn parent(&self) -> Option<String> {
        let parent = self.parent.as_ref()?;
        let given = if parent.resolves {
            "names to resolve"
        } else {
            "judged addresses"
        };
        Some(format!("{}, which is given {given}", parent.url))
    }
}

impl RuleReport {
    fn allow(rule: &AllowRule) -> Self {
        Self {
            effect: "allow",
            host: rule.host.to_string(),
            scheme: rule.scheme.map(|scheme| scheme.as_str()),
            tls: Some(match rule.tls {
                TunnelTls::Pass => "pass",
                TunnelTls::Opaque => "opaque",
            }),
            methods: texts(&rule.methods),
            paths: texts(&rule.paths),
            report_until: rule.report_until.map(written),
            also_server: rule.also_server,
            origin: rule.origin.to_string(),
            ..Self::of(&rule.who)
        }
    }

    fn deny(rule: &DenyRule) -> Self {
        Self {
            effect: "deny",
            host: rule.host.to_string(),
            report_until: rule.report_until.map(written),
            origin: rule.origin.to_string(),
            ..Self::of(&rule.who)
        }
    }

    fn of(who: &Who) -> Self {
        Self {
            tenants: texts(&who.tenants),
            users: texts(&who.users),
            groups: texts(&who.groups),
            agents: texts(&who.agents),
            ..Self::default()
        }
    }

    fn line(&self) -> String {
        let mut line = format!("{} {}", self.effect, self.host);
        let mut add = |what: &str, words: &[String]| {
            if !words.is_empty() {
                line += &format!(", {what} {}", words.join(" "));
            }
        };
        add("only", self.scheme.map(str::to_owned).as_slice());
        add("tenants", &self.tenants);
        add("users", &self.users);
        add("groups", &self.groups);
        add("agents", &self.agents);
        let opaque = self.tls.filter(|tls| *tls == "opaque");
        add("tls", opaque.map(str::to_owned).as_slice());
        add("methods", &self.methods);
        add("paths", &self.paths);
        add("only reported until", self.report_until.as_slice());
        if self.also_server {
            line += ", also a server's";
        }
        format!("{line} ({})", self.origin)
    }
}

impl ParentReport {
    fn new(parent: &Parent) -> Self {
        Self {
            url: parent.target.to_string(),
            resolves: parent.resolves,
        }
    }
}

fn texts(words: &[impl Display]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// As files write a time.
fn written(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time)
        .map_or_else(|_| "the end of time".to_owned(), |time| time.to_string())
}
