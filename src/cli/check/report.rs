//! What a folder without faults amounts to.

mod proxy;
mod servers;
mod settings;
mod warnings;

use std::fmt::Write;

use serde::Serialize;

use self::{
    proxy::ProxyReport,
    servers::{GrantReport, ServerReport},
    settings::{access_mode, agents, egress, identity, keyring, mark, name_servers, offer, web},
    warnings::{readable, warnings},
};
use crate::{
    app::load::{Loaded, Loader},
    cli::{auth, style::Styles},
};

/// What takes effect only at the next start.
const RESTART: &str = "state_dir, store, listen (but allowed_origins), identity (but admins), vault and audit take effect at the next start";

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
    egress: String,
    ops: String,
    web: String,
    /// What clients are registered with; `None` where no server wants one.
    redirect_uri: Option<String>,
    /// Where authorization servers read about this client; `None` where no document is served.
    client_metadata_url: Option<String>,
    /// Where a browser may be sent back to.
    return_to: Vec<String>,
    identity: String,
    name_servers: Vec<String>,
    access_mode: &'static str,
    offer: &'static str,
    state_dir: String,
    store: String,
    keyring: String,
    mark: String,
    warnings: Vec<String>,
}

impl Report {
    pub(super) fn new(loader: &Loader, loaded: &Loaded) -> Self {
        let (settings, policy) = (&*loaded.settings, &*loaded.policy);
        let mut servers: Vec<_> = policy.servers.values().collect();
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        let mut warnings = warnings(settings, policy, loader.environment(), &servers);
        warnings.extend(readable(loader.folder(), &loaded.secrets));
        let connects = servers.iter().any(|server| auth::is_oauth(server));
        let public_url = settings.public_url_or_default();
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
            egress: egress(settings),
            ops: settings
                .listen
                .ops
                .map_or_else(|| "off".to_owned(), |ops| ops.to_string()),
            web: web(settings),
            redirect_uri: public_url
                .filter(|_| connects)
                .map(|url| auth::redirect_uri(&url)),
            client_metadata_url: settings
                .connect
                .client_metadata_url
                .as_deref()
                .map(str::to_owned),
            return_to: settings
                .connect
                .return_to
                .iter()
                .map(ToString::to_string)
                .collect(),
            identity: identity(&settings.identity.method),
            name_servers: name_servers(settings),
            access_mode: access_mode(policy.access_mode),
            offer: offer(settings.offer),
            state_dir: settings.state_dir.display().to_string(),
            store: format!("sqlite:{}", settings.store.display()),
            keyring: keyring(settings),
            mark: mark(settings),
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
        rows.list("servers", self.servers.iter().map(ServerReport::line));
        rows.row("keys", &self.keys.to_string());
        let grants = self.private_grants.iter();
        rows.list("private", grants.map(GrantReport::line));
        rows.list("proxy", self.proxy.lines());
        if let Some(parent) = self.proxy.parent() {
            rows.row("parent", &parent);
        }
        rows.row("agents", &self.agents);
        rows.row("egress", &self.egress);
        rows.row("ops", &self.ops);
        rows.row("web", &self.web);
        if let Some(uri) = &self.redirect_uri {
            rows.row("redirect", uri);
        }
        if let Some(url) = &self.client_metadata_url {
            rows.row("document", url);
        }
        if !self.return_to.is_empty() {
            rows.list("return_to", self.return_to.iter().cloned());
        }
        rows.row("identity", &self.identity);
        rows.list("dns", self.name_servers.iter().cloned());
        rows.row(
            "access",
            &format!("TOOLS_ACCESS_MODE: {}", self.access_mode),
        );
        rows.row("offer", self.offer);
        rows.row("state", &self.state_dir);
        rows.row("store", &self.store);
        rows.row("keyring", &self.keyring);
        rows.row("mark", &self.mark);
        rows.row("restart", RESTART);
        for warning in &self.warnings {
            rows.row("warning", &styles.bad(warning));
        }
        rows.text
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
