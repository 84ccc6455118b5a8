//! The tables of `tollgate.toml`, one function each.

use std::{
    net::SocketAddr,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use url::Url;

use super::{Audit, Dns, Endpoint, Limits, Listen, Method, OnFailure, Parent, Tls, Zone};
use crate::{
    deadline::CEILING,
    secret::Source,
    subject::DEFAULT_TENANT,
    table::{Item, Table},
};

/// The longest path that the system takes for a unix socket.
const LONGEST_SOCKET_PATH: usize = 107;

/// What a size in bytes may be.
const SIZES: RangeInclusive<u64> = 1024..=64 << 20;
/// Bytes that the results of a turn may have.
const TURNS: RangeInclusive<u64> = 64 << 10..=1 << 40;

pub(super) fn listen(table: &Table<'_>) -> Listen {
    let defaults = Listen::default();
    Listen {
        agents: table
            .text("agents")
            .map_or(defaults.agents, |text| endpoint(table, &text)),
        egress: table
            .text("egress")
            .map_or(defaults.egress, |text| tcp(table, &text)),
        // Metrics and health carry no credential and no TLS, so they may stand on any address: who can reach it sees them.
        ops: table
            .text("ops")
            .map_or(defaults.ops, |text| tcp(table, &text)),
        web: table
            .text("web")
            .map_or(defaults.web, |text| tcp(table, &text)),
        tls: table.table("tls").and_then(|table| tls(&table)),
        behind_tls: table.flag("behind_tls").unwrap_or_default(),
        allowed_origins: allowed_origins(table),
    }
}

fn endpoint(table: &Table<'_>, text: &Item<String>) -> Option<Endpoint> {
    if text.value.is_empty() {
        return None;
    }
    let Some(path) = text.value.strip_prefix("unix:") else {
        return address(table, text).map(Endpoint::Tcp);
    };
    if !path.starts_with('/') || path.len() > LONGEST_SOCKET_PATH {
        table.fault(text.fault(format!(
            "expected `unix:` and an absolute path of at most {LONGEST_SOCKET_PATH} bytes; correct the path"
        )));
    }
    Some(Endpoint::Unix(PathBuf::from(path)))
}

/// An address; `None` is off.
fn tcp(table: &Table<'_>, text: &Item<String>) -> Option<SocketAddr> {
    if text.value.is_empty() {
        return None;
    }
    address(table, text)
}

fn address(table: &Table<'_>, text: &Item<String>) -> Option<SocketAddr> {
    let address = text.value.parse().ok();
    if address.is_none() {
        table.fault(text.fault(format!(
            "found `{}`, expected an address and port such as \"127.0.0.1:8700\" or \"[::1]:8700\", or \"\" for off",
            text.value
        )));
    }
    address
}

fn tls(table: &Table<'_>) -> Option<Tls> {
    let source = |key| {
        let text = table.required_text(key)?;
        Source::parse(&text.value)
            .map_err(|error| table.fault(text.fault(error)))
            .ok()
    };
    let (cert, key) = (source("cert"), source("key"));
    Some(Tls {
        cert: cert?,
        key: key?,
    })
}

fn allowed_origins(table: &Table<'_>) -> Vec<Arc<str>> {
    let mut origins = Vec::new();
    for item in table.texts("allowed_origins").unwrap_or_default() {
        match origin(&item.value) {
            Some(origin) => origins.push(origin),
            None => table.fault(item.fault(format!(
                "found `{}`, expected an exact origin such as \"https://app.example.com\"; correct it",
                item.value
            ))),
        }
    }
    origins
}

/// An http or https origin in its canonical form: lower case, no default port (RFC 6454, section 6.2).
pub(super) fn origin(text: &str) -> Option<Arc<str>> {
    let url = Url::parse(text).ok()?;
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let named = url.username().is_empty() && url.password().is_none();
    let web = matches!(url.scheme(), "http" | "https");
    (bare && named && web).then(|| url.origin().ascii_serialization().into())
}

pub(super) fn local(table: &Table<'_>) -> Method {
    let name = |key, default: &str| {
        let text = table.text(key).filter(|text| {
            let fits = !text.value.trim().is_empty() && !text.value.chars().any(char::is_control);
            if !fits {
                table.fault(
                    text.fault("expected visible characters; write a name, or remove the key"),
                );
            }
            fits
        });
        text.map_or_else(|| Arc::from(default), |text| text.value.into())
    };
    // `read` looks at it once the listeners are known.
    table.flag("force");
    Method::Local {
        user: name("user", "local"),
        tenant: name("tenant", DEFAULT_TENANT),
    }
}

/// The file that `url` names; `None` where there is no such key.
pub(super) fn store(table: &Table<'_>) -> Option<PathBuf> {
    table.unavailable(&["password"]);
    let url = table.text("url")?;
    let path = url.value.strip_prefix("sqlite:").map(Path::new);
    let fits = |path: &&Path| path.is_absolute() && path.file_name().is_some();
    let path = path.filter(fits).map(Path::to_owned);
    if path.is_none() {
        let later = ["postgres://", "postgresql://"];
        let later = later.iter().any(|scheme| url.value.starts_with(scheme));
        table.fault(url.fault(if later {
            "PostgreSQL is not available in this version; use \"sqlite:PATH\", or remove the key"
        } else {
            "expected `sqlite:` and the absolute path of a file, such as \"sqlite:/var/lib/tollgate/tollgate.db\"; correct it"
        }));
    }
    path
}

/// A proxy in plain text: what goes through it to an https host is TLS of its own.
pub(super) fn parent(table: &Table<'_>) -> Option<Parent> {
    let resolves = table.flag("parent_resolves").unwrap_or_default();
    let written = table.required_text("url")?;
    let url = origin(&written.value).filter(|url| url.starts_with("http://"));
    if url.is_none() {
        table.fault(
            written.fault("expected \"http://HOST:PORT\", without a password or path; correct it"),
        );
    }
    url.map(|url| Parent { url, resolves })
}

pub(super) fn audit(table: &Table<'_>) -> Audit {
    table.choice("arguments", &[("none", Some(())), ("redacted", None)]);
    table.only_empty(&["group"]);
    let words = [
        ("stop", Some(OnFailure::Stop)),
        ("reads", Some(OnFailure::Reads)),
    ];
    Audit {
        on_failure: table.choice("on_failure", &words).unwrap_or_default(),
    }
}

pub(super) fn limits(table: &Table<'_>) -> Limits {
    let defaults = Limits::default();
    let time = |key, default| {
        let bounds = Duration::from_millis(1)..=CEILING;
        table.duration(key, bounds).unwrap_or(default)
    };
    let size = |key, default| {
        let bytes = table.integer(key, SIZES);
        bytes
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(default)
    };
    let count = |key, bounds| {
        let found = table.integer(key, bounds);
        found.and_then(|found| usize::try_from(found).ok())
    };
    Limits {
        request_bytes: size("request_bytes", defaults.request_bytes),
        response_bytes: size("response_bytes", defaults.response_bytes),
        connect: time("connect", defaults.connect),
        first_byte: time("first_byte", defaults.first_byte),
        idle: time("idle", defaults.idle),
        call: time("call", defaults.call),
        running: count("running", 1..=8).unwrap_or(defaults.running),
        waiting: count("waiting", 0..=8).unwrap_or(defaults.waiting),
        turn_bytes: count("turn_bytes", TURNS).unwrap_or(defaults.turn_bytes),
    }
}

pub(super) fn dns(table: &Table<'_>) -> Dns {
    let mut zones: Vec<Zone> = Vec::new();
    for zone in table.tables("zone") {
        let suffix = zone
            .required_text("suffix")
            .and_then(|text| suffix(&zone, &text));
        let servers = name_servers(&zone);
        if servers.is_empty() {
            let message = "a zone needs name servers; add servers = [\"ADDRESS:53\"]";
            zone.fault(zone.place_of("servers").fault(message));
        }
        let Some(suffix) = suffix else { continue };
        if zones.iter().any(|other| other.suffix == suffix) {
            let message = format!("`{suffix}` has a zone already; keep one");
            zone.fault(zone.place_of("suffix").fault(message));
        }
        zones.push(Zone { suffix, servers });
    }
    Dns {
        servers: name_servers(table),
        zones,
    }
}

fn suffix(zone: &Table<'_>, text: &Item<String>) -> Option<Arc<str>> {
    let name = idna::domain_to_ascii_strict(text.value.trim_matches('.')).ok();
    let name = name.filter(|name| !name.is_empty());
    if name.is_none() {
        let message = format!(
            "found `{}`, expected a zone such as \"corp.example\"; correct it",
            text.value
        );
        zone.fault(text.fault(message));
    }
    name.map(Arc::from)
}

/// Addresses with a port; 53 where none is written.
fn name_servers(table: &Table<'_>) -> Vec<SocketAddr> {
    let mut servers = Vec::new();
    for item in table.texts("servers").unwrap_or_default() {
        let with_port = item.value.parse().ok();
        let server =
            with_port.or_else(|| item.value.parse().ok().map(|ip| SocketAddr::new(ip, 53)));
        match server.filter(|server| server.port() != 0) {
            Some(server) => servers.push(server),
            None => table.fault(item.fault(format!(
                "found `{}`, expected a name server's address such as \"10.0.0.53:53\"; correct it",
                item.value
            ))),
        }
    }
    servers
}
