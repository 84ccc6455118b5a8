//! What a folder without faults amounts to.

use std::fmt::Write;

use serde::Serialize;

use super::{proxy::ProxyReport, warnings};
use crate::{
    address::{Grant, Port},
    app::load::{Loaded, Loader},
    catalog::{ItemKind, pins_file},
    cli::style::{Styles, counted},
    config::{Endpoint, Method, Settings},
    policy::{Access, AccessMode, Pin, Server},
};

/// What takes effect only at the next start.
const RESTART: &str = "state_dir, store, listen (but allowed_origins), identity (but admins) and audit take effect at the next start";

/// The shape of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    faults: [(); 0],
    folder: String,
    servers: Vec<ServerReport>,
    keys: usize,
    private_grants: Vec<GrantReport>,
    proxy: ProxyReport,
    agents: String,
    ops: String,
    identity: String,
    name_servers: Vec<String>,
    access_mode: &'static str,
    state_dir: String,
    store: String,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ServerReport {
    name: String,
    at: String,
    access: &'static str,
    tenants: Vec<String>,
    /// Where its pins are.
    pin: &'static str,
    /// What a pins file holds.
    pins: Option<PinsReport>,
}

#[derive(Debug, Serialize)]
struct PinsReport {
    version: u64,
    tools: usize,
    others: usize,
}

#[derive(Debug, Serialize)]
struct GrantReport {
    host: String,
    port: String,
    legs: Vec<String>,
    origin: String,
}

impl Report {
    pub(super) fn new(loader: &Loader, loaded: &Loaded) -> Self {
        let (settings, policy) = (&*loaded.settings, &*loaded.policy);
        let mut servers: Vec<_> = policy.servers.values().collect();
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        let warnings = warnings::all(settings, policy, loader.environment(), &servers);
        Self {
            faults: [],
            folder: loader.folder().display().to_string(),
            servers: servers
                .into_iter()
                .map(|server| ServerReport::new(server))
                .collect(),
            keys: policy.keys.len(),
            private_grants: policy
                .addresses
                .grants
                .iter()
                .map(GrantReport::new)
                .collect(),
            proxy: ProxyReport::new(&policy.proxy),
            agents: agents(settings),
            ops: settings
                .listen
                .ops
                .map_or_else(|| "off".to_owned(), |ops| ops.to_string()),
            identity: identity(&settings.identity.method),
            name_servers: name_servers(settings),
            access_mode: access_mode(policy.access_mode),
            state_dir: settings.state_dir.display().to_string(),
            store: format!("sqlite:{}", settings.store.display()),
            warnings,
        }
    }

    pub(super) fn text(&self, styles: Styles) -> String {
        let mut rows = Rows {
            text: String::new(),
            styles,
        };
        rows.row(
            "policy",
            &format!("{}: {}", self.folder, styles.good("no faults")),
        );
        rows.list(
            "servers",
            self.servers.iter().map(|server| {
                let tenants = server.tenants.join(", ");
                format!(
                    "{} at {}, for {} of {tenants}, {}",
                    server.name,
                    server.at,
                    server.access,
                    server.pinned()
                )
            }),
        );
        rows.row("keys", &self.keys.to_string());
        rows.list(
            "private",
            self.private_grants.iter().map(|grant| {
                format!(
                    "{} port {} for {} ({})",
                    grant.host,
                    grant.port,
                    grant.legs.join(", "),
                    grant.origin
                )
            }),
        );
        rows.list("proxy", self.proxy.lines());
        if let Some(parent) = self.proxy.parent() {
            rows.row("parent", &parent);
        }
        rows.row("agents", &self.agents);
        rows.row("ops", &self.ops);
        rows.row("identity", &self.identity);
        rows.list("dns", self.name_servers.iter().cloned());
        rows.row(
            "access",
            &format!("TOOLS_ACCESS_MODE: {}", self.access_mode),
        );
        rows.row("state", &self.state_dir);
        rows.row("store", &self.store);
        rows.row("restart", RESTART);
        for warning in &self.warnings {
            rows.row("warning", &styles.bad(warning));
        }
        rows.text
    }
}

impl ServerReport {
    fn new(server: &Server) -> Self {
        Self {
            name: server.name.to_string(),
            at: server.endpoint.target().to_string(),
            access: match server.access {
                Access::Admins => "admins",
                Access::Everyone => "everyone",
            },
            tenants: server.tenants.iter().map(ToString::to_string).collect(),
            pin: match server.pin {
                Pin::FirstUse => "first-use",
                Pin::File(_) => "file",
            },
            pins: PinsReport::of(server),
        }
    }

    /// Where its pins are, and how many.
    fn pinned(&self) -> String {
        match &self.pins {
            None => format!("pin = \"{}\"", self.pin),
            Some(pins) => format!(
                "pin = \"file\" (version {}, {}, {})",
                pins.version,
                counted(pins.tools, "tool"),
                counted(pins.others, "other item")
            ),
        }
    }
}

impl PinsReport {
    /// `None` where the pins are in the store, which a running process keeps, or there is no file yet.
    fn of(server: &Server) -> Option<Self> {
        let Pin::File(Some(text)) = &server.pin else {
            return None;
        };
        let pinned = pins_file::read("", &server.name, text).ok()?;
        let items = pinned.items.iter();
        let tools = items.filter(|item| item.kind == ItemKind::Tool).count();
        Some(Self {
            version: pinned.version,
            tools,
            others: pinned.items.len() - tools,
        })
    }
}

impl GrantReport {
    fn new(grant: &Grant) -> Self {
        Self {
            host: grant.host.to_string(),
            port: match grant.port {
                Port::Exact(port) => port.to_string(),
                Port::Any => "any".to_owned(),
            },
            legs: grant.legs.iter().map(ToString::to_string).collect(),
            origin: grant.origin.to_string(),
        }
    }
}

struct Rows {
    text: String,
    styles: Styles,
}

impl Rows {
    fn row(&mut self, label: &str, value: &str) {
        let label = self.styles.dim(&format!("{label:<9}"));
        writeln!(self.text, "{label} {value}").expect("writing to memory does not fail");
    }

    fn list(&mut self, label: &str, values: impl Iterator<Item = String>) {
        let mut label = Some(label);
        for value in values {
            self.row(label.take().unwrap_or_default(), &value);
        }
        if let Some(label) = label {
            self.row(label, "none");
        }
    }
}

fn agents(settings: &Settings) -> String {
    let listen = &settings.listen;
    let place = match &listen.agents {
        None => return "off".to_owned(),
        Some(Endpoint::Tcp(address)) => address.to_string(),
        Some(Endpoint::Unix(path)) => format!("unix:{}", path.display()),
    };
    match (&listen.tls, listen.behind_tls) {
        (Some(_), _) => format!("{place}, TLS"),
        (None, true) => format!("{place}, plain behind TLS"),
        (None, false) => format!("{place}, plain"),
    }
}

fn identity(method: &Method) -> String {
    match method {
        Method::Local { user, tenant } => {
            format!("local: every caller is `{user}` of tenant `{tenant}`, who administers")
        }
        Method::Keys => "keys".to_owned(),
    }
}

fn name_servers(settings: &Settings) -> Vec<String> {
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

fn access_mode(mode: AccessMode) -> &'static str {
    match mode {
        AccessMode::Files => "not set, each server's access decides",
        AccessMode::Admins => "admins, whatever files say",
        AccessMode::AllUsers => "all-users, whatever files say",
    }
}
