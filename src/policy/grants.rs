//! Private grants, held against the servers that they are for.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Inputs,
    egress_file::{Egress, Private},
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
        let unknown = private
            .servers
            .iter()
            .filter_map(|name| unknown(name, servers));
        faults.extend(unknown);
        let Some(grant) = compiled(private) else {
            continue;
        };
        for name in &private.servers {
            faults.extend(elsewhere(&grant, name, servers));
        }
        faults.extend(shut(private, &grant, servers, inputs));
        grants.push(grant);
    }
    grants.extend(from_environment(inputs.private_allowlist, servers, faults));
    for draft in servers.values().flatten() {
        faults.extend(ungranted(draft, &grants));
    }
    grants
}

fn compiled(private: &Private) -> Option<Grant> {
    let (host, port) = private.destination.clone()?;
    let legs = private
        .servers
        .iter()
        .map(|name| Leg::Server(name.value.as_str().into()));
    Some(Grant {
        host,
        port,
        addresses: private.addresses.iter().map(|item| item.value).collect(),
        address: private.address.as_ref().map(|item| item.value),
        legs: legs.collect(),
        origin: format!("{}: [[private]]", private.place).into(),
    })
}

/// A leg whose server does not exist.
fn unknown(name: &Item<String>, servers: &BTreeMap<&str, Option<Draft>>) -> Option<Fault> {
    let known = servers.contains_key(name.value.as_str());
    (!known).then(|| {
        name.fault(format!(
            "there is no server `{0}`; add servers/{0}.toml, or correct the name",
            name.value
        ))
    })
}

/// A leg whose server is somewhere else: the grant would open nothing.
fn elsewhere(
    grant: &Grant,
    name: &Item<String>,
    servers: &BTreeMap<&str, Option<Draft>>,
) -> Option<Fault> {
    let draft = servers.get(name.value.as_str())?.as_ref()?;
    (!opened(grant, draft)).then(|| {
        name.fault(format!(
            "server `{}` is at {}, which this grant does not open; make host and port those of its url",
            name.value,
            whereabouts(draft.server.endpoint.target())
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
    let mut named = private
        .servers
        .iter()
        .filter_map(|name| servers.get(name.value.as_str())?.as_ref());
    let server = &named.find(|draft| opened(grant, draft))?.server;
    let leg = Leg::Server(server.name.clone());
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
    if let Err(blocked) = rules.before_resolving(&leg, server.endpoint.target()) {
        let place = private
            .address
            .as_ref()
            .map_or(&private.place, |item| &item.place);
        return Some(closed(place, &blocked));
    }
    private.addresses.iter().find_map(|net| {
        let single = net.value.prefix_len() == net.value.max_prefix_len();
        let answer = single.then(|| net.value.addr())?;
        let blocked = rules
            .judge(&leg, server.endpoint.target(), &[answer])
            .err()?;
        Some(closed(&net.place, &blocked))
    })
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
