//! Private grants, held against the servers that they are for.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Inputs,
    egress_file::{Egress, Private},
    proxy,
    server_file::Draft,
};
use crate::{
    address::{Blocked, Grant, Host, Leg, Port, Rules, Target},
    table::{Fault, Item, Place},
};

/// The name of the variable, which stands where a file would.
const ALLOWLIST: &str = "TOOLS_PRIVATE_NETWORK_ALLOWLIST";

/// All grants: those of `egress.toml`, then those of the environment.
pub(super) fn resolve(
    egress: &Egress,
    servers: &BTreeMap<&str, Option<Draft>>,
    inputs: &Inputs<'_>,
    faults: &mut Vec<Fault>,
) -> Vec<Grant> {
    let mut grants: Vec<Grant> = Vec::new();
    for private in &egress.private {
        faults.extend(unknown(private, servers));
        let Some(grant) = compiled(private) else {
            continue;
        };
        faults.extend(elsewhere(private, &grant, servers));
        faults.extend(without_oauth(private, servers));
        faults.extend(unallowed(private, &grant, &egress.proxy));
        faults.extend(shut(private, &grant, servers, inputs));
        grants.push(grant);
    }
    grants.extend(from_environment(inputs.private_allowlist, servers, faults));
    for draft in servers.values().flatten() {
        faults.extend(ungranted(draft, &grants));
        faults.extend(ungranted_loopback(draft, &grants));
    }
    grants
}

fn compiled(private: &Private) -> Option<Grant> {
    let (host, port) = private.destination.clone()?;
    Some(Grant {
        host,
        port,
        addresses: private.addresses.iter().map(|item| item.value).collect(),
        address: private.address.as_ref().map(|item| item.value),
        legs: private.legs.iter().map(|leg| leg.value.clone()).collect(),
        origin: format!("{}: [[private]]", private.place).into(),
    })
}

/// The names of servers among the legs that lead to them.
fn named(private: &Private) -> impl Iterator<Item = (&Item<Leg>, &str)> {
    private.legs.iter().filter_map(|leg| match &leg.value {
        Leg::Server(name) => Some((leg, &**name)),
        _ => None,
    })
}

/// The names of servers among the legs that their OAuth needs.
fn named_for_oauth(private: &Private) -> impl Iterator<Item = (&Item<Leg>, &str)> {
    private.legs.iter().filter_map(|leg| match &leg.value {
        Leg::OAuth(name) => Some((leg, &**name)),
        _ => None,
    })
}

/// Legs whose servers do not exist.
fn unknown(
    private: &Private,
    servers: &BTreeMap<&str, Option<Draft>>,
) -> impl Iterator<Item = Fault> {
    let named = named(private).chain(named_for_oauth(private));
    let unknown = named.filter(|(_, name)| !servers.contains_key(name));
    unknown.map(|(leg, name)| {
        leg.fault(format!(
            "there is no server `{name}`; add servers/{name}.toml, correct the name, or remove it from this table"
        ))
    })
}

/// Legs whose servers are somewhere else: the grant would open nothing.
fn elsewhere(
    private: &Private,
    grant: &Grant,
    servers: &BTreeMap<&str, Option<Draft>>,
) -> impl Iterator<Item = Fault> {
    named(private).filter_map(|(leg, name)| {
        let draft = servers.get(name)?.as_ref()?;
        (!opened(grant, draft)).then(|| {
            leg.fault(format!(
                "server `{name}` is at {}, which this grant does not open; make host and port those of its url",
                whereabouts(draft.server.endpoint.target())
            ))
        })
    })
}

/// Legs for the OAuth of servers that have none: the grant would open nothing.
fn without_oauth(
    private: &Private,
    servers: &BTreeMap<&str, Option<Draft>>,
) -> impl Iterator<Item = Fault> {
    named_for_oauth(private).filter_map(|(leg, name)| {
        let draft = servers.get(name)?.as_ref()?;
        draft.server.auth.oauth().is_none().then(|| {
            leg.fault(format!(
                "server `{name}` has no OAuth, so this opens nothing; set mode = \"oauth\" in its `[auth]`, or remove it"
            ))
        })
    })
}

/// A grant for the proxy where no rule lets anybody go: it would open nothing.
fn unallowed(private: &Private, grant: &Grant, proxy: &proxy::Drafts) -> Option<Fault> {
    let leg = private.legs.iter().find(|leg| leg.value == Leg::Proxy)?;
    let mut rules = proxy.allow.iter().map(|draft| &draft.rule);
    let allowed = rules.any(|rule| {
        let port = match grant.port {
            Port::Any => true,
            Port::Exact(port) => rule.on_port(port),
        };
        port && rule.host.covers_host(&grant.host)
    });
    (!allowed).then(|| {
        let place = match grant.port {
            Port::Any => grant.host.to_string(),
            Port::Exact(port) => format!("{} port {port}", grant.host),
        };
        leg.fault(format!(
            "no `[[allow]]` leads to {place}, so this opens nothing; add one, or remove \"proxy\""
        ))
    })
}

/// A grant for something that no grant can open (metadata), told in the judge's own words.
fn shut(
    private: &Private,
    grant: &Grant,
    servers: &BTreeMap<&str, Option<Draft>>,
    inputs: &Inputs<'_>,
) -> Option<Fault> {
    let (leg, target) = judged(private, grant, servers)?;
    let rules = Rules {
        grants: vec![grant.clone()],
        kubernetes: inputs.kubernetes.clone(),
        ..Rules::default()
    };
    let closed = |place: &Place, blocked: &Blocked| {
        place.fault(format!(
            "no grant can open this: {}; remove the grant",
            blocked.reason
        ))
    };
    if let Err(blocked) = rules.before_resolving(&leg, &target) {
        let place = private
            .address
            .as_ref()
            .map_or(&private.place, |item| &item.place);
        return Some(closed(place, &blocked));
    }
    private.addresses.iter().find_map(|net| {
        let single = net.value.prefix_len() == net.value.max_prefix_len();
        let answer = single.then(|| net.value.addr())?;
        let blocked = rules.judge(&leg, &target, &[answer]).err()?;
        Some(closed(&net.place, &blocked))
    })
}

/// A request that the grant is for. Grants for any port are for loopback, of which nothing is shut.
fn judged(
    private: &Private,
    grant: &Grant,
    servers: &BTreeMap<&str, Option<Draft>>,
) -> Option<(Leg, Target)> {
    let mut servers = named(private).filter_map(|(_, name)| servers.get(name)?.as_ref());
    if let Some(draft) = servers.find(|draft| opened(grant, draft)) {
        let server = &draft.server;
        let leg = Leg::Server(server.name.clone());
        return Some((leg, server.endpoint.target().clone()));
    }
    let other = |leg: &&Leg| matches!(leg, Leg::Proxy | Leg::OAuth(_));
    let leg = grant.legs.iter().find(other)?;
    let Port::Exact(port) = grant.port else {
        return None;
    };
    let target = Target::from_authority(&format!("{}:{port}", grant.host)).ok();
    target.map(|target| (leg.clone(), target))
}

/// `insecure_http` without a grant would send plain text to wherever the name leads.
fn ungranted(draft: &Draft, grants: &[Grant]) -> Option<Fault> {
    let place = draft.insecure.as_ref()?;
    let server = &draft.server;
    let leg = Leg::Server(server.name.clone());
    let granted = grants
        .iter()
        .any(|grant| grant.legs.contains(&leg) && opened(grant, draft));
    (!granted).then(|| {
        place.fault(format!(
            "needs a private grant for {}; add a `[[private]]` table for \"server:{}\" to egress.toml, or use https",
            whereabouts(server.endpoint.target()),
            server.name
        ))
    })
}

/// `allow_http_loopback` without a grant would open nothing: loopback is private.
fn ungranted_loopback(draft: &Draft, grants: &[Grant]) -> Option<Fault> {
    let place = draft.plain.as_ref()?;
    let name = &draft.server.name;
    let leg = Leg::OAuth(name.clone());
    let granted = grants
        .iter()
        .any(|grant| grant.legs.contains(&leg) && grant.host.is_loopback());
    (!granted).then(|| {
        place.fault(format!(
            "opens nothing without a private grant; add a `[[private]]` table for \"oauth:{name}\" and a loopback host to \
             egress.toml, or remove it"
        ))
    })
}

fn from_environment(
    allowlist: Option<&str>,
    servers: &BTreeMap<&str, Option<Draft>>,
    faults: &mut Vec<Fault>,
) -> Vec<Grant> {
    let mut grants = Vec::new();
    let entries = allowlist.unwrap_or_default().split(',').map(str::trim);
    for entry in entries.filter(|entry| !entry.is_empty()) {
        let host = match Host::from_operator(entry) {
            Ok(host) => host,
            Err(error) => {
                let remedy = "write exact hosts separated by commas, without ports or `*`";
                faults.push(Fault::whole(ALLOWLIST, format!("{error}; {remedy}")));
                continue;
            }
        };
        let drafts = servers.values().flatten();
        for draft in drafts.filter(|draft| *draft.server.endpoint.target().host() == host) {
            grants.push(Grant {
                host: host.clone(),
                port: Port::Exact(draft.server.endpoint.target().port()),
                addresses: Vec::new(),
                address: None,
                legs: vec![Leg::Server(draft.server.name.clone())],
                origin: Arc::from(ALLOWLIST),
            });
        }
    }
    grants
}

/// Whether host and port of the grant are those of the server.
fn opened(grant: &Grant, draft: &Draft) -> bool {
    let target = draft.server.endpoint.target();
    let port = grant.port == Port::Any || grant.port == Port::Exact(target.port());
    port && grant.host == *target.host()
}

fn whereabouts(target: &Target) -> String {
    format!("{} port {}", target.host(), target.port())
}
