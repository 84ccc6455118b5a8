//! What is registered: servers with their pins, and the private addresses that they may be at.

use serde::Serialize;

use crate::{
    address::{Grant, Port},
    catalog::{ItemKind, pins_file},
    cli::{auth, style::counted},
    policy::{Access, Pin, Server},
};

#[derive(Debug, Serialize)]
pub(super) struct ServerReport {
    name: String,
    at: String,
    access: &'static str,
    tenants: Vec<String>,
    /// Where its pins are.
    pin: &'static str,
    /// What a pins file holds.
    pins: Option<PinsReport>,
    auth: AuthReport,
}

/// How it is shown who calls.
#[derive(Debug, Serialize)]
struct AuthReport {
    mode: &'static str,
    /// What differs from the defaults, in the words of the file.
    settings: Vec<String>,
    presets: Vec<&'static str>,
}

impl ServerReport {
    pub(super) fn new(server: &Server) -> Self {
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
            auth: AuthReport {
                mode: server.auth.mode(),
                settings: auth::settings(&server.auth),
                presets: server
                    .auth
                    .oauth()
                    .map(|knobs| knobs.presets.clone())
                    .unwrap_or_default(),
            },
        }
    }

    pub(super) fn line(&self) -> String {
        let tenants = self.tenants.join(", ");
        format!(
            "{} at {}, for {} of {tenants}, {}{}",
            self.name,
            self.at,
            self.access,
            self.pinned(),
            self.auth.said()
        )
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

impl AuthReport {
    /// For the end of a server's line.
    fn said(&self) -> String {
        if self.mode == "none" {
            return String::new();
        }
        let mut said = format!(", mode = \"{}\"", self.mode);
        if !self.settings.is_empty() {
            said += &format!(" ({})", self.settings.join(", "));
        }
        if !self.presets.is_empty() {
            said += &format!(", presets: {}", self.presets.join(", "));
        }
        said
    }
}

#[derive(Debug, Serialize)]
struct PinsReport {
    version: u64,
    tools: usize,
    others: usize,
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

#[derive(Debug, Serialize)]
pub(super) struct GrantReport {
    host: String,
    port: String,
    legs: Vec<String>,
    origin: String,
}

impl GrantReport {
    pub(super) fn new(grant: &Grant) -> Self {
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

    pub(super) fn line(&self) -> String {
        format!(
            "{} port {} for {} ({})",
            self.host,
            self.port,
            self.legs.join(", "),
            self.origin
        )
    }
}
