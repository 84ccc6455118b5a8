//! `tollgate.toml`, from top to bottom.

use std::{net::SocketAddr, path::PathBuf};

use super::{
    DATABASE, Endpoint, Environment, FILE, Identity, Listen, Method, Offer, Settings,
    parts::{audit, dns, limits, listen, local, parent, store},
    people,
};
use crate::{
    subject::Admins,
    table::{self, Fault, Table},
};

/// Reads the settings; without a text (no file) every default holds. Faults are in no particular order.
pub fn read(text: Option<&str>, environment: &Environment) -> Result<Settings, Vec<Fault>> {
    let (settings, mut faults) = table::read(FILE, text.unwrap_or_default(), |root| {
        settings(root, environment)
    });
    match settings.flatten() {
        Some(settings) if faults.is_empty() => Ok(settings),
        _ => {
            faults.sort();
            Err(faults)
        }
    }
}

/// Reads nothing but where the state is, whatever faults the other keys have.
///
/// # Errors
///
/// The faults of `state_dir`, or of a text that is no TOML.
pub fn read_state_dir(text: &str, environment: &Environment) -> Result<PathBuf, Vec<Fault>> {
    let (found, mut faults) = table::read(FILE, text, |root| state_dir(root, environment));
    let Some(path) = found.flatten() else {
        return Err(faults);
    };
    faults.retain(|fault| fault.key == "state_dir");
    if faults.is_empty() {
        Ok(path)
    } else {
        Err(faults)
    }
}

fn settings(root: &Table<'_>, environment: &Environment) -> Option<Settings> {
    later(root);
    let offers = [
        ("allowed", Some(Offer::Allowed)),
        ("connected", Some(Offer::Connected)),
    ];
    let offer = root.choice("offer", &offers).unwrap_or_default();
    let public_url = people::public_url(root);
    let state_dir = state_dir(root, environment);
    let listen = root
        .table("listen")
        .map_or_else(Listen::default, |table| listen(&table));
    let identity = identity(root, &listen, environment);
    check_exposure(root, &listen);
    check_distinct(root, &listen);
    people::check_public(root, &listen, public_url.as_deref());
    let store = root.table("store").and_then(|table| store(&table));
    let parent = root
        .table("egress")
        .and_then(|egress| egress.table("parent"))
        .and_then(|table| parent(&table));
    let state_dir = state_dir?;
    Some(Settings {
        public_url,
        listen,
        identity,
        audit: root
            .table("audit")
            .map(|table| audit(&table))
            .unwrap_or_default(),
        limits: root
            .table("limits")
            .map(|table| limits(&table))
            .unwrap_or_default(),
        dns: root
            .table("dns")
            .map(|table| dns(&table))
            .unwrap_or_default(),
        parent,
        offer,
        vault: root
            .table("vault")
            .map(|table| people::vault(&table))
            .unwrap_or_default(),
        connect: root
            .table("connect")
            .map(|table| people::connect(&table))
            .unwrap_or_default(),
        web: root
            .table("web")
            .map(|table| people::web(&table))
            .unwrap_or_default(),
        store: store.unwrap_or_else(|| state_dir.join(DATABASE)),
        state_dir,
    })
}

/// What the design knows and this version does not.
fn later(root: &Table<'_>) {
    root.choice("naming", &[("server", Some(())), ("mcp", None)]);
}

fn state_dir(root: &Table<'_>, environment: &Environment) -> Option<PathBuf> {
    if let Some(written) = root.text("state_dir") {
        let path = PathBuf::from(&written.value);
        if !path.is_absolute() {
            root.fault(written.fault("expected an absolute path; begin it with `/`"));
        }
        return Some(path);
    }
    let set = |value: &Option<String>| {
        value
            .clone()
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let under = |base: Option<PathBuf>, rest: &str| base.map(|base| base.join(rest));
    let found = set(&environment.state_directory)
        .or_else(|| under(set(&environment.xdg_state_home), "tollgate"))
        .or_else(|| under(set(&environment.home), ".local/state/tollgate"));
    if found.is_none() {
        let message = "`state_dir` is missing, and the environment names no place for state; add it, as in state_dir = \"/var/lib/tollgate\"";
        root.fault(root.place().fault(message));
    }
    found
}

fn identity(root: &Table<'_>, listen: &Listen, environment: &Environment) -> Identity {
    let table = root.table("identity");
    let admins = table.as_ref().map(admins).unwrap_or_default();
    let method = match &table {
        None => Method::default(),
        Some(table) => method(table),
    };
    if matches!(method, Method::Local { .. }) {
        check_local(root, table.as_ref(), listen, environment);
    }
    Identity { admins, method }
}

fn admins(identity: &Table<'_>) -> Admins {
    let Some(table) = identity.table("admins") else {
        return Admins::default();
    };
    let names = |key| {
        let items = table.texts(key).unwrap_or_default();
        items.into_iter().map(|item| item.value.into()).collect()
    };
    Admins {
        users: names("users"),
        groups: names("groups"),
    }
}

fn method(identity: &Table<'_>) -> Method {
    identity.unavailable(&["jwt", "mtls"]);
    let keys = identity.table("keys");
    match (identity.table("local"), keys) {
        (Some(_), Some(keys)) => {
            let message = "stands beside `[identity.local]`, which lets everyone in without a key; keep one of the two";
            identity.fault(keys.place().fault(message));
            Method::Keys
        }
        (Some(table), None) => local(&table),
        (None, Some(_)) => Method::Keys,
        (None, None) => {
            let message = "says how nobody is known; add `[identity.keys]` (or `[identity.local]` on a machine of your own)";
            identity.fault(identity.place().fault(message));
            Method::Keys
        }
    }
}

/// A caller without a credential has to be on this machine, and the machine has to be a person's.
fn check_local(
    root: &Table<'_>,
    identity: Option<&Table<'_>>,
    listen: &Listen,
    environment: &Environment,
) {
    let table = identity.and_then(|identity| identity.table("local"));
    let forced = table
        .as_ref()
        .and_then(|table| table.flag("force"))
        .unwrap_or_default();
    let place = table
        .as_ref()
        .map_or_else(|| root.place(), |table| table.place());
    let why = match table {
        Some(_) => "`[identity.local]` asks nobody for a credential",
        None => "without `[identity]` nobody is asked for a credential",
    };
    if let Some(key) = exposed(listen).first() {
        root.fault(place.fault(format!(
            "{why}, but listen.{key} is open to other machines; add `[identity.keys]`, or listen on 127.0.0.1{}",
            if *key == "agents" { " or unix:PATH" } else { "" }
        )));
    }
    if environment.kubernetes_service_host.is_some() && !forced {
        root.fault(place.fault(format!(
            "{why}, and every container of this Kubernetes pod could call; add `[identity.keys]`, or \
             `[identity.local]` with force = true"
        )));
    }
}

fn check_exposure(root: &Table<'_>, listen: &Listen) {
    if listen.tls.is_some() || listen.behind_tls {
        return;
    }
    for key in exposed(listen) {
        let place = root
            .table("listen")
            .map_or_else(|| root.place(), |table| table.place_of(key));
        root.fault(place.fault(
            "open to other machines without TLS; add tls = { cert = …, key = … }, or behind_tls = true where TLS \
             ends in front of it",
        ));
    }
}

/// The listeners for agents and people that other machines can reach, by their keys.
fn exposed(listen: &Listen) -> Vec<&'static str> {
    let agents = listen.agents.as_ref().map(Endpoint::is_local);
    let local = |address: Option<SocketAddr>| address.map(|address| address.ip().is_loopback());
    let (egress, web) = (local(listen.egress), local(listen.web));
    let listeners = [("agents", agents), ("egress", egress), ("web", web)].into_iter();
    let open = listeners.filter(|(_, local)| *local == Some(false));
    open.map(|(key, _)| key).collect()
}

/// Two listeners cannot share an address and port; an unspecified address is every one of its family.
fn check_distinct(root: &Table<'_>, listen: &Listen) {
    let agents = match listen.agents {
        Some(Endpoint::Tcp(address)) => Some(address),
        _ => None,
    };
    let listeners = [
        ("agents", agents),
        ("egress", listen.egress),
        ("ops", listen.ops),
        ("web", listen.web),
    ];
    let listeners = listeners.map(|(key, address)| Some(key).zip(address));
    let listeners: Vec<_> = listeners.into_iter().flatten().collect();
    for (at, (key, address)) in listeners.iter().enumerate() {
        let mut before = listeners[..at].iter();
        let Some((first, taken)) = before.find(|(_, other)| overlap(*address, *other)) else {
            continue;
        };
        let place = root
            .table("listen")
            .map_or_else(|| root.place(), |table| table.place_of(key));
        root.fault(place.fault(format!(
            "listen.{first} ({taken}) and listen.{key} ({address}) want the same port; give one of them another"
        )));
    }
}

fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    let alike = one.ip() == other.ip() || (everywhere && one.is_ipv4() == other.is_ipv4());
    one.port() != 0 && one.port() == other.port() && alike
}
