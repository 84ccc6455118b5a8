//! Rules of the proxy that hold and are probably not meant.

use std::{sync::Arc, time::SystemTime};

use super::{AllowRule, DenyRule, TunnelTls, Who, destination, patterns_include, words_include};
use crate::{
    address::{Blocked, Host, Leg, Scheme},
    policy::{Key, Local, Snapshot},
};

/// What is said of rules that can never decide anything, one a line: `now` is the time to judge reports by, and
/// `local` the one user of an installation without keys.
pub fn lints(snapshot: &Snapshot, local: Option<&Local>, now: SystemTime) -> Vec<String> {
    let lint = Lint {
        snapshot,
        local,
        now,
    };
    let mut found = Vec::new();
    for (at, rule) in snapshot.proxy.allow.iter().enumerate() {
        let said = lint.allow(at, rule).into_iter().flatten();
        found.extend(said.map(|said| format!("{} {said}", rule.origin)));
    }
    for (at, rule) in snapshot.proxy.deny.iter().enumerate() {
        let said = lint.deny(at, rule).into_iter().flatten();
        found.extend(said.map(|said| format!("{} {said}", rule.origin)));
    }
    let over = lint.over(snapshot.proxy.report_until);
    found.extend(over.map(|said| format!("egress.toml: report_until {said}")));
    found
}

struct Lint<'a> {
    snapshot: &'a Snapshot,
    local: Option<&'a Local>,
    now: SystemTime,
}

impl Lint<'_> {
    fn allow(&self, at: usize, rule: &AllowRule) -> [Option<String>; 7] {
        let proxy = &self.snapshot.proxy;
        let earlier = proxy.allow[..at].iter();
        let earlier = earlier.map(|earlier| &**earlier);
        let blocked = self.unreachable(rule);
        let reached = blocked.is_none();
        let shut = proxy.deny.iter().find(|deny| shuts(deny, rule));
        [
            shut.map(|deny| format!("never allows anything: {} refuses all of it", deny.origin)),
            shadowing(earlier, rule),
            blocked.map(|blocked| format!("never allows anything: {blocked}")),
            without_name(rule).filter(|_| reached),
            self.nobody(&rule.who),
            self.over(rule.report_until),
            self.without_server(rule),
        ]
    }

    fn deny(&self, at: usize, rule: &DenyRule) -> [Option<String>; 4] {
        let proxy = &self.snapshot.proxy;
        let mut earlier = proxy.deny[..at].iter();
        let shadow = earlier.find(|earlier| {
            let until = earlier.report_until.is_none() || earlier.report_until == rule.report_until;
            let port = earlier.host.port().is_none() || earlier.host.port() == rule.host.port();
            until && port && earlier.host.includes(&rule.host) && earlier.who.includes(&rule.who)
        });
        let idle =
            proxy.report_until.is_none() && !proxy.allow.iter().any(|allow| touches(rule, allow));
        [
            shadow.map(|first| format!("never decides: {} refuses all of it", first.origin)),
            idle.then(|| {
                "refuses nothing that an [[allow]] would allow; what no rule names is refused anyway"
                    .to_owned()
            }),
            self.nobody(&rule.who),
            self.over(rule.report_until),
        ]
    }

    /// Why the judge refuses every place that the rule leads to, if it does.
    fn unreachable(&self, rule: &AllowRule) -> Option<Blocked> {
        let rules = &self.snapshot.addresses;
        let mut granted = rules.grants.iter();
        if granted.any(|grant| {
            grant.legs.contains(&Leg::Proxy)
                && rule.host.exact() != Some(&grant.host)
                && rule.host.covers_host(&grant.host)
        }) {
            return None;
        }
        let host = rule.host.example()?;
        let mut blocked = None;
        for (scheme, port) in rule.places() {
            let target = destination(scheme, &host, port)?;
            blocked = Some(rules.before_resolving(&Leg::Proxy, &target).err()?);
        }
        blocked
    }

    /// Whether no caller that the policy knows is named.
    fn nobody(&self, who: &Who) -> Option<String> {
        let named = match self.local {
            Some(local) => {
                let groups = who.groups.is_empty();
                let user = who.users.is_empty() || who.users.contains(&local.user);
                let mut agents = who.agents.iter();
                let agent = who.agents.is_empty() || agents.any(|agent| agent.matches("local"));
                let tenant = who.tenants.is_empty() || who.tenants.contains(&local.tenant);
                tenant && user && groups && agent
            }
            None => {
                let keys = &self.snapshot.keys;
                keys.is_empty() || keys.values().any(|key| may_be_named(who, key))
            }
        };
        (!named).then(|| "is for nobody: no caller can be whom its `who` names".to_owned())
    }

    fn over(&self, until: Option<SystemTime>) -> Option<String> {
        let over = until.is_some_and(|until| until <= self.now);
        over.then(|| {
            "no longer reports, since its report_until has passed; remove the key".to_owned()
        })
    }

    fn without_server(&self, rule: &AllowRule) -> Option<String> {
        let mut servers = self.snapshot.servers.values();
        let idle = rule.also_server && !servers.any(|server| rule.leads_to(server));
        idle.then(|| "says also_server = true, and leads to no server; remove the key".to_owned())
    }
}

/// Whether it promises TLS for a host that no TLS server name can name: an address stands in none (RFC 6066, section 3).
fn without_name(rule: &AllowRule) -> Option<String> {
    let address = matches!(rule.host.exact(), Some(Host::Ip(_)));
    let tunnels = rule.tls == TunnelTls::Pass && rule.scheme != Some(Scheme::Http);
    (address && tunnels).then(|| {
        "lets no tunnel through: TLS names no address, so that tls = \"pass\" finds no host; write tls = \"opaque\", or \
         scheme = \"http\" for plain requests alone"
            .to_owned()
    })
}

/// Says which earlier rule lets everything pass that `rule` could.
fn shadowing<'a>(
    mut earlier: impl Iterator<Item = &'a AllowRule>,
    rule: &AllowRule,
) -> Option<String> {
    let first = earlier.find(|first| covers_all(first, rule))?;
    Some(format!(
        "never decides: {} allows all of it before",
        first.origin
    ))
}

fn covers_all(first: &AllowRule, rule: &AllowRule) -> bool {
    let open = first.who.is_everyone() && first.methods.is_empty() && first.paths.is_empty();
    first.host.includes(&rule.host)
        && rule
            .places()
            .all(|place| first.places().any(|own| own == place))
        && first.who.includes(&rule.who)
        && words_include(&first.methods, &rule.methods)
        && patterns_include(&first.paths, &rule.paths)
        && (open || rule.report_until.is_none())
}

/// Whether `deny` refuses everything that `rule` could let pass.
fn shuts(deny: &DenyRule, rule: &AllowRule) -> bool {
    let port = |port| rule.places().all(|(_, own)| own == port);
    deny.report_until.is_none()
        && deny.host.includes(&rule.host)
        && deny.host.port().is_none_or(port)
        && deny.who.includes(&rule.who)
        && (deny.who.is_everyone() || rule.report_until.is_none())
}

/// Whether there is a host and port that both are about.
fn touches(deny: &DenyRule, rule: &AllowRule) -> bool {
    let hosts = deny.host.includes(&rule.host) || rule.host.includes(&deny.host);
    hosts && deny.host.port().is_none_or(|port| rule.on_port(port))
}

/// Whether `who` names a caller who shows this key: its own user, or one that it may act for.
fn may_be_named(who: &Who, key: &Key) -> bool {
    let acts_for = |user: &Arc<str>| {
        let mut users = key.may_act_for.iter();
        *user == key.subject.user || users.any(|listed| **listed == *"*" || listed == user)
    };
    let mut groups = key.subject.groups.iter();
    let mut agents = who.agents.iter();
    who.of_tenant(&key.subject)
        && (who.users.is_empty() || who.users.iter().any(acts_for))
        && (who.groups.is_empty()
            || key.may_assert_groups
            || groups.any(|group| who.groups.contains(group)))
        && (who.agents.is_empty() || agents.any(|agent| agent.matches(&key.subject.agent)))
}
