//! All files together become one snapshot, or every fault that stands in the way.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use super::{
    AccessMode, AllowRule, CallLimits, Pin, Proxy, ServerLimits, Snapshot, egress_file, grants,
    keys_file::{self, KeyEntry},
    proxy,
    server_file::{self, Draft},
    words::name_fault,
};
use crate::{
    address::{Host, Rules},
    secret::{Secret, Source},
    subject::{Admins, DEFAULT_TENANT},
    table::Fault,
};

/// A file of the policy folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path within the folder, with `/` between parts.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// The one user of an installation without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// The tenant.
    pub tenant: Arc<str>,
    /// The user, who administers.
    pub user: Arc<str>,
}

/// All that a policy is compiled from.
pub struct Inputs<'a> {
    /// The folder's files; `tollgate.toml` may be among them and is left to `config`.
    pub files: &'a [File],
    /// Reads a file that a file names (`ca`), by its path from the folder or from the root.
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
    /// Reads a secret from where a file says it is kept.
    pub secret: &'a dyn Fn(&Source) -> Result<Secret, String>,
    /// Whether there is a web listener, on which people connect.
    pub web: bool,
    /// Whether `[connect] client_metadata_url` is set.
    pub client_metadata: bool,
    /// `TOOLS_PRIVATE_NETWORK_ALLOWLIST`.
    pub private_allowlist: Option<&'a str>,
    /// `TOOLS_ACCESS_MODE`.
    pub access_mode: Option<&'a str>,
    /// `KUBERNETES_SERVICE_HOST`, which nothing opens.
    pub kubernetes: Option<Host>,
    /// `[identity] admins`, and the local user of the running process.
    pub admins: Admins,
    /// `[identity.local]`; `None` where callers show keys.
    pub local: Option<Local>,
    /// `[egress.parent]`: its url, an http origin, and `parent_resolves`.
    pub parent: Option<(&'a str, bool)>,
    /// Bounds for servers that set none.
    pub limits: ServerLimits,
    /// Bounds of each caller's calls.
    pub calls: CallLimits,
    /// Whether servers are offered only to callers who have a credential for them.
    pub connected_only: bool,
    /// Addresses of this host.
    pub own_addresses: Vec<IpAddr>,
    /// Where this process listens.
    pub own_listeners: Vec<SocketAddr>,
}

/// Compiles a policy of generation 0, or gives every fault, in the order of files and lines.
pub fn compile(inputs: &Inputs<'_>) -> Result<Snapshot, Vec<Fault>> {
    let mut faults = Vec::new();
    let sorted = sort(inputs.files, &mut faults);

    let mut servers = BTreeMap::new();
    for (name, file) in &sorted.servers {
        let draft = server_file::read(name, file, inputs, &mut faults);
        servers.insert(name.as_str(), draft);
    }
    let keys = sorted.keys.map(|file| keys_file::read(file, &mut faults));
    let keys = keys.unwrap_or_default();
    let egress = sorted
        .egress
        .map(|file| egress_file::read(file, &mut faults));
    let egress = egress.unwrap_or_default();

    let grants = grants::resolve(&egress, &servers, inputs, &mut faults);
    let registered = servers.values().flatten().map(|draft| &draft.server);
    faults.extend(proxy::around_approvals(&egress.proxy.allow, registered));
    let parent = proxy::parent(inputs.parent, &mut faults);
    check_tenants(&servers, &egress.proxy.allow, &keys, inputs, &mut faults);
    check_pins(&sorted, &servers, &mut faults);
    check_keys(&keys, inputs, &mut faults);
    let access_mode = access_mode(inputs.access_mode, &mut faults);

    if !faults.is_empty() {
        faults.sort();
        faults.dedup();
        return Err(faults);
    }
    let servers = servers.into_values().flatten().map(|draft| draft.server);
    Ok(Snapshot {
        generation: 0,
        servers: Arc::new(
            servers
                .map(|server| (server.name.clone(), Arc::new(server)))
                .collect(),
        ),
        keys: keys
            .into_iter()
            .map(|entry| (entry.digest, Arc::new(entry.key)))
            .collect(),
        admins: inputs.admins.clone(),
        access_mode,
        calls: inputs.calls,
        connected_only: inputs.connected_only,
        proxy: Proxy {
            allow: compiled(egress.proxy.allow),
            deny: egress.proxy.deny,
            report_until: egress.proxy.report_until,
            parent,
            tunnels: egress.proxy.tunnels,
        },
        addresses: Arc::new(Rules {
            grants,
            nat64: egress.nat64,
            fake_ip: egress.fake_ip,
            own_addresses: inputs.own_addresses.clone(),
            own_listeners: inputs.own_listeners.clone(),
            kubernetes: inputs.kubernetes.clone(),
        }),
    })
}

fn compiled(rules: Vec<proxy::Draft>) -> Vec<Arc<AllowRule>> {
    let rules = rules.into_iter().map(|draft| Arc::new(draft.rule));
    rules.collect()
}

/// The folder's files by what they are for.
#[derive(Default)]
struct Sorted<'a> {
    servers: BTreeMap<String, &'a File>,
    /// Pins files by the name of their server.
    pins: BTreeMap<&'a str, &'a File>,
    keys: Option<&'a File>,
    egress: Option<&'a File>,
}

fn sort<'a>(files: &'a [File], faults: &mut Vec<Fault>) -> Sorted<'a> {
    let mut sorted = Sorted::default();
    for file in files {
        if let Some(name) = server_name(&file.path) {
            if let Some(fault) = name_fault(name) {
                faults.push(Fault::whole(&file.path, fault));
            }
            if let Some(first) = sorted.servers.insert(name.to_owned(), file) {
                let message = format!("`{}` describes server `{name}` too; keep one", first.path);
                faults.push(Fault::whole(&file.path, message));
            }
            continue;
        }
        if let Some(name) = pins_name(&file.path) {
            sorted.pins.insert(name, file);
            continue;
        }
        match file.path.as_str() {
            "tollgate.toml" => {}
            "keys.toml" => sorted.keys = Some(file),
            "egress.toml" => sorted.egress = Some(file),
            "access.toml" | "approval.toml" => faults.push(Fault::whole(
                &file.path,
                "not available in this version; remove the file, or begin its name with `_`",
            )),
            _ => faults.push(Fault::whole(
                &file.path,
                "not a name that is read; expected tollgate.toml, keys.toml, egress.toml, servers/NAME.toml, \
                 server.NAME.toml or pins/NAME.json; rename it, or begin its name with `_` to leave it out",
            )),
        }
    }
    sorted
}

fn server_name(path: &str) -> Option<&str> {
    let nested = path
        .strip_prefix("servers/")
        .filter(|rest| !rest.contains('/'));
    let flat = path
        .strip_prefix("server.")
        .filter(|rest| !rest.contains('/'));
    nested.or(flat)?.strip_suffix(".toml")
}

fn pins_name(path: &str) -> Option<&str> {
    path.strip_prefix("pins/")?.strip_suffix(".json")
}

/// Pins that nothing is held against would look like a review and be none.
fn check_pins(
    sorted: &Sorted<'_>,
    servers: &BTreeMap<&str, Option<Draft>>,
    faults: &mut Vec<Fault>,
) {
    for (name, file) in &sorted.pins {
        match servers.get(name) {
            None => faults.push(Fault::whole(
                &file.path,
                format!("there is no server `{name}`; add servers/{name}.toml, or remove the file"),
            )),
            Some(Some(draft)) if draft.server.pin == Pin::FirstUse => {
                faults.push(draft.pin.fault(format!(
                    "`{}` is not read, since the server's pins are in the store; set pin = \"file\", or remove the file",
                    file.path
                )));
            }
            // A file of the server that cannot be understood has faults of its own.
            Some(_) => {}
        }
    }
}

/// Once there are two tenants, a server has to say whose it is, and an `[[allow]]` for whose callers.
fn check_tenants(
    servers: &BTreeMap<&str, Option<Draft>>,
    rules: &[proxy::Draft],
    keys: &[KeyEntry],
    inputs: &Inputs<'_>,
    faults: &mut Vec<Fault>,
) {
    let drafts = || servers.values().flatten();
    let of_servers = drafts().filter(|draft| draft.names_tenants);
    let of_servers = of_servers.flat_map(|draft| draft.server.tenants.iter());
    let of_rules = rules.iter().filter(|draft| draft.names_tenants);
    let of_rules = of_rules.flat_map(|draft| draft.rule.who.tenants.iter());
    let of_keys = keys.iter().map(|entry| &entry.key.subject.tenant);
    let of_local = inputs.local.iter().map(|local| &local.tenant);
    let tenants: BTreeSet<&str> = of_servers
        .chain(of_rules)
        .chain(of_keys)
        .chain(of_local)
        .map(|t| &**t)
        .collect();
    if tenants.len() < 2 && tenants.iter().all(|tenant| *tenant == DEFAULT_TENANT) {
        return;
    }
    let known: Vec<String> = tenants.iter().map(|tenant| format!("`{tenant}`")).collect();
    for draft in drafts().filter(|draft| !draft.names_tenants) {
        faults.push(draft.place.fault(format!(
            "`tenants` is missing, and there are the tenants {}; name those whose callers may see this server",
            known.join(", ")
        )));
    }
    faults.extend(proxy::unnamed_tenants(rules, &tenants));
}

/// Keys that no listener asks for would look like protection and be none.
fn check_keys(keys: &[KeyEntry], inputs: &Inputs<'_>, faults: &mut Vec<Fault>) {
    if inputs.local.is_none() {
        return;
    }
    faults.extend(keys.first().map(|entry| {
        entry.place.fault(
            "keys are not asked for, since every caller is the local user; add `[identity.keys]` to tollgate.toml \
             (and remove `[identity.local]`), or remove the keys",
        )
    }));
}

fn access_mode(written: Option<&str>, faults: &mut Vec<Fault>) -> AccessMode {
    match written.map(str::trim) {
        None | Some("") => AccessMode::Files,
        Some("admins") => AccessMode::Admins,
        Some("all-users") => AccessMode::AllUsers,
        Some(other) => {
            faults.push(Fault::whole(
                "TOOLS_ACCESS_MODE",
                format!("found `{other}`, expected `admins` or `all-users`; correct or unset it"),
            ));
            AccessMode::Admins
        }
    }
}

#[cfg(test)]
mod tests;
