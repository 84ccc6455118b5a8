//! `[[allow]]`, `[[deny]]` and `report_until` of `egress.toml`.

use std::{sync::Arc, time::SystemTime};

use super::{AllowRule, DenyRule, HostPattern, TunnelLimits, TunnelTls, Who, tunnels};
use crate::{
    address::Scheme,
    policy::{
        Pattern,
        words::{moment, word},
    },
    subject::DEFAULT_TENANT,
    table::{Item, Place, Table},
};

/// What the file says of the proxy, before it is held against the servers.
#[derive(Default)]
pub(in crate::policy) struct Drafts {
    pub(in crate::policy) allow: Vec<Draft>,
    pub(in crate::policy) deny: Vec<DenyRule>,
    pub(in crate::policy) report_until: Option<SystemTime>,
    pub(in crate::policy) tunnels: TunnelLimits,
}

/// An `[[allow]]` table, and what only shows beside the other files.
pub(in crate::policy) struct Draft {
    pub(in crate::policy) rule: AllowRule,
    /// Where the table begins.
    pub(in crate::policy) place: Place,
    /// Where its host stands.
    pub(super) host: Place,
    /// Whether it says of which tenants its callers are.
    pub(in crate::policy) names_tenants: bool,
}

/// Reads the parts of the file that are the proxy's.
pub(in crate::policy) fn read(root: &Table<'_>) -> Drafts {
    let (allow, deny) = (root.tables("allow"), root.tables("deny"));
    Drafts {
        allow: allow.iter().filter_map(read_allow).collect(),
        deny: deny.iter().filter_map(read_deny).collect(),
        report_until: moment(root, "report_until"),
        tunnels: tunnels::read(root),
    }
}

fn read_allow(table: &Table<'_>) -> Option<Draft> {
    table.unavailable(&["inject"]);
    let host = host(table);
    let scheme = table.choice(
        "scheme",
        &[("http", Some(Scheme::Http)), ("https", Some(Scheme::Https))],
    );
    let mut who = who(table);
    let names_tenants = !who.tenants.is_empty();
    if !names_tenants {
        who.tenants.push(DEFAULT_TENANT.into());
    }
    let rule = AllowRule {
        scheme,
        who,
        tls: tls(table),
        methods: methods(table),
        paths: paths(table),
        report_until: moment(table, "report_until"),
        also_server: table.flag("also_server").unwrap_or_default(),
        origin: origin(table, "allow"),
        host: host?,
    };
    check_seen(table, &rule);
    check_tls(table, &rule);
    check_report(table, &rule);
    Some(Draft {
        rule,
        place: table.place(),
        host: table.place_of("host"),
        names_tenants,
    })
}

fn read_deny(table: &Table<'_>) -> Option<DenyRule> {
    let host = host(table);
    Some(DenyRule {
        who: who(table),
        report_until: moment(table, "report_until"),
        origin: origin(table, "deny"),
        host: host?,
    })
}

fn origin(table: &Table<'_>, kind: &str) -> Arc<str> {
    format!("{}: [[{kind}]]", table.place()).into()
}

fn host(table: &Table<'_>) -> Option<HostPattern> {
    let written = table.required_text("host")?;
    HostPattern::read(&written.value)
        .map_err(|error| table.fault(written.fault(error)))
        .ok()
}

fn who(table: &Table<'_>) -> Who {
    let Some(who) = table.table("who") else {
        return Who::default();
    };
    let agents = named(&who, "agents").into_iter();
    Who {
        agents: agents.map(|agent| Pattern::new(&agent)).collect(),
        tenants: named(&who, "tenants"),
        users: named(&who, "users"),
        groups: named(&who, "groups"),
    }
}

/// The names of a list that may be left out, and not be empty: nobody is not everybody.
fn named(who: &Table<'_>, key: &'static str) -> Vec<Arc<str>> {
    listed(who, key, "names nobody; name someone, or remove the key")
        .into_iter()
        .filter_map(|item| word(who, item))
        .collect()
}

fn listed(table: &Table<'_>, key: &'static str, empty: &str) -> Vec<Item<String>> {
    let items = table.texts(key);
    if items.as_ref().is_some_and(Vec::is_empty) {
        table.fault(table.place_of(key).fault(empty));
    }
    items.unwrap_or_default()
}

fn tls(table: &Table<'_>) -> TunnelTls {
    let words = [
        ("pass", Some(TunnelTls::Pass)),
        ("opaque", Some(TunnelTls::Opaque)),
        ("inspect", None),
    ];
    table.choice("tls", &words).unwrap_or_default()
}

/// Methods in capitals (RFC 9110, section 9.1); CONNECT is no plain request.
fn methods(table: &Table<'_>) -> Vec<Arc<str>> {
    let legal = |method: &str| {
        let capitals = |b: u8| b.is_ascii_uppercase() || b == b'-';
        (1..=32).contains(&method.len()) && method.bytes().all(capitals) && method != "CONNECT"
    };
    let mut methods = Vec::new();
    for item in listed(table, "methods", NO_REQUEST) {
        if !legal(&item.value) {
            table.fault(item.fault(format!(
                "found `{}`, expected the method of a plain request in capitals, such as \"GET\"; correct it",
                item.value.escape_debug()
            )));
        }
        methods.push(item.value.into());
    }
    methods
}

fn paths(table: &Table<'_>) -> Vec<Pattern> {
    let legal = |path: &str| {
        let graphic = path.bytes().all(|b| b.is_ascii_graphic());
        path.starts_with('/') && graphic && !path.contains(['?', '#', '\\'])
    };
    let mut paths = Vec::new();
    for item in listed(table, "paths", NO_REQUEST) {
        if !legal(&item.value) {
            table.fault(item.fault(format!(
                "found `{}`, expected a path without a query, such as \"/repos/*\"; correct it",
                item.value.escape_debug()
            )));
        }
        paths.push(Pattern::new(&item.value));
    }
    paths
}

const NO_REQUEST: &str = "covers no request; name some, or remove the key";

/// What a rule says of requests has no force in a tunnel, so that it must not seem to.
fn check_seen(table: &Table<'_>, rule: &AllowRule) {
    for key in ["methods", "paths"] {
        if table.has(key) && rule.scheme != Some(Scheme::Http) {
            table.fault(table.place_of(key).fault(
                "requests inside TLS are not seen; add scheme = \"http\" to allow plain requests only, or remove the key \
                 (tls = \"inspect\" is not available in this version)",
            ));
        }
    }
}

fn check_tls(table: &Table<'_>, rule: &AllowRule) {
    if table.has("tls") && rule.scheme == Some(Scheme::Http) {
        let message =
            "has no effect, since scheme = \"http\" allows no tunnel; remove one of the two";
        table.fault(table.place_of("tls").fault(message));
    }
    let narrow = rule.host.exact().is_some() && rule.host.port().is_some();
    if rule.tls == TunnelTls::Opaque && !narrow {
        let message = "what an opaque tunnel carries is not checked, so it is for one exact host and port; write \
                       host = \"HOST:PORT\", or use \"pass\"";
        table.fault(table.place_of("tls").fault(message));
    }
}

fn check_report(table: &Table<'_>, rule: &AllowRule) {
    let refuses_none = rule.who.is_everyone() && rule.methods.is_empty() && rule.paths.is_empty();
    if rule.report_until.is_some() && refuses_none {
        let message = "has no effect, since the rule refuses nothing that it could report; add users, groups, agents, \
                       methods or paths, or remove the key";
        table.fault(table.place_of("report_until").fault(message));
    }
}
