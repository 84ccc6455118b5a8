//! What the settings amount to, a line each.

use std::net::SocketAddr;

use crate::{
    config::{Endpoint, Method, Offer, Settings},
    policy::AccessMode,
    secret::Source,
};

pub(super) fn agents(settings: &Settings) -> String {
    let listen = &settings.listen;
    let place = match &listen.agents {
        None => return "off".to_owned(),
        Some(Endpoint::Tcp(address)) => address.to_string(),
        Some(Endpoint::Unix(path)) => format!("unix:{}", path.display()),
    };
    with_tls(settings, &place)
}

pub(super) fn egress(settings: &Settings) -> String {
    listener(settings, settings.listen.egress)
}

/// The web listener, and where people reach it.
pub(super) fn web(settings: &Settings) -> String {
    let place = listener(settings, settings.listen.web);
    match &settings.public_url {
        Some(url) if settings.listen.web.is_some() => format!("{place}, reached at {url}"),
        _ => place,
    }
}

fn listener(settings: &Settings, address: Option<SocketAddr>) -> String {
    address.map_or_else(
        || "off".to_owned(),
        |address| with_tls(settings, &address.to_string()),
    )
}

/// Where it is kept how far the database had come, and what is not seen by that.
pub(super) fn mark(settings: &Settings) -> String {
    let mark = settings.mark();
    let beside = settings.store.parent();
    let is_beside = beside.is_some_and(|folder| mark.starts_with(folder));
    let text = mark.display().to_string();
    match is_beside {
        true => format!(
            "{text}, beside the database: an older copy of both together is not noticed; [vault] mark puts it elsewhere"
        ),
        false => text,
    }
}

/// Where the keyring is, and what guards it.
pub(super) fn keyring(settings: &Settings) -> String {
    let sealed = match &settings.vault.key {
        None => "guarded by the mode of the file alone".to_owned(),
        Some(Source::Env(name)) => format!("sealed by the key in env:{name}"),
        Some(Source::File(path)) => format!("sealed by the key in file:{path}"),
        Some(Source::Credential(name)) => format!("sealed by the key in credential:{name}"),
    };
    format!("{}, {sealed}", settings.keyring().display())
}

fn with_tls(settings: &Settings, place: &str) -> String {
    match (&settings.listen.tls, settings.listen.behind_tls) {
        (Some(_), _) => format!("{place}, TLS"),
        (None, true) => format!("{place}, plain behind TLS"),
        (None, false) => format!("{place}, plain"),
    }
}

pub(super) fn identity(method: &Method) -> String {
    match method {
        Method::Local { user, tenant } => {
            format!("local: every caller is `{user}` of tenant `{tenant}`, who administers")
        }
        Method::Keys => "keys".to_owned(),
    }
}

pub(super) fn name_servers(settings: &Settings) -> Vec<String> {
    let dns = &settings.dns;
    let mut lines: Vec<String> = dns.servers.iter().map(ToString::to_string).collect();
    if lines.is_empty() {
        lines.push("those of /etc/resolv.conf".to_owned());
    }
    for zone in &dns.zones {
        let servers: Vec<String> = zone.servers.iter().map(ToString::to_string).collect();
        lines.push(format!("{} for {}", servers.join(", "), zone.suffix));
    }
    lines
}

pub(super) fn offer(offer: Offer) -> &'static str {
    match offer {
        Offer::Allowed => "allowed: every server that a caller may use",
        Offer::Connected => {
            "connected: of these, the servers that a caller is connected to, and those that want no connection"
        }
    }
}

pub(super) fn access_mode(mode: AccessMode) -> &'static str {
    match mode {
        AccessMode::Files => "not set, each server's access decides",
        AccessMode::Admins => "admins, whatever files say",
        AccessMode::AllUsers => "all-users, whatever files say",
    }
}
