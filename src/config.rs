//! Owns: deployment settings, as `tollgate.toml` and the environment give them.
//! Imports: layer 0.
//! Never: does I/O; the file's text and the environment come in as data.
//! Fails as: [`crate::table::Fault`]s.

mod parts;
mod people;
mod read;
mod restart;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

pub use read::{read, read_state_dir};

use crate::{
    secret::Source,
    subject::{Admins, DEFAULT_TENANT},
};

/// The name of the file, within the policy folder.
pub const FILE: &str = "tollgate.toml";

/// The name of the control socket, within `state_dir`.
pub const CONTROL_SOCKET: &str = "control.sock";

/// The name of the database, within `state_dir`, where `store.url` does not place it elsewhere.
pub const DATABASE: &str = "tollgate.db";

/// The name of the keyring, within `state_dir`, where `vault.keyring` does not place it elsewhere.
pub const KEYRING: &str = "keyring";

/// The name of the mark of the vault, within `state_dir`, where `vault.mark` does not place it elsewhere.
pub const MARK: &str = "vault.mark";

/// What the process environment says; `app` reads it, so that everything below is a function of data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `STATE_DIRECTORY`, which systemd sets.
    pub state_directory: Option<String>,
    /// `XDG_STATE_HOME`.
    pub xdg_state_home: Option<String>,
    /// `HOME`.
    pub home: Option<String>,
    /// `KUBERNETES_SERVICE_HOST`: the process runs in a pod, and this is the address of the API server.
    pub kubernetes_service_host: Option<String>,
    /// `TOOLS_PRIVATE_NETWORK_ALLOWLIST`.
    pub private_allowlist: Option<String>,
    /// `TOOLS_ACCESS_MODE`.
    pub access_mode: Option<String>,
    /// Proxy variables that are set, by name; they are ignored with a warning.
    pub proxies: Vec<String>,
}

/// Everything that `tollgate.toml` sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `public_url`: where people and agents reach this installation; its host is accepted in `Host`. An origin: https, or
    /// http to loopback.
    pub public_url: Option<Arc<str>>,
    /// `state_dir`.
    pub state_dir: PathBuf,
    /// `store.url`: where the database is.
    pub store: PathBuf,
    /// `offer`: which servers callers are offered.
    pub offer: Offer,
    /// `[listen]`.
    pub listen: Listen,
    /// `[identity]`.
    pub identity: Identity,
    /// `[audit]`.
    pub audit: Audit,
    /// `[limits]`.
    pub limits: Limits,
    /// `[dns]`.
    pub dns: Dns,
    /// `[egress.parent]`.
    pub parent: Option<Parent>,
    /// `[vault]`.
    pub vault: Vault,
    /// `[connect]`.
    pub connect: Connect,
    /// `[web]`.
    pub web: Web,
}

/// `offer`: which of the servers that callers may use they are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offer {
    /// All.
    #[default]
    Allowed,
    /// Those for which there is a credential of theirs, and those that want none.
    Connected,
}

/// `[vault]`: where the keyring is, and what seals it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vault {
    /// `keyring`; absent is `keyring` in `state_dir`.
    pub keyring: Option<PathBuf>,
    /// `mark`: where it is kept how far the database had come; absent is `vault.mark` in `state_dir`.
    pub mark: Option<PathBuf>,
    /// `key`; absent: the mode of the file alone guards it.
    pub key: Option<Source>,
}

/// `[connect]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connect {
    /// `client_metadata_url`; absent: no client id metadata document.
    pub client_metadata_url: Option<Arc<str>>,
    /// `return_to`: where a browser may be sent back to; each an absolute URL that what is asked for begins with, in its
    /// canonical form, without a query.
    pub return_to: Vec<Arc<str>>,
}

/// `[web]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Web {
    /// `login`.
    pub login: Login,
}

/// `web.login`: how browsers show whose they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Login {
    /// By a one-time link of `tollgate login`.
    #[default]
    Local,
}

impl Settings {
    /// Where the control socket stands.
    pub fn control_socket(&self) -> PathBuf {
        self.state_dir.join(CONTROL_SOCKET)
    }

    /// Where the keyring is.
    pub fn keyring(&self) -> PathBuf {
        let keyring = self.vault.keyring.clone();
        keyring.unwrap_or_else(|| self.state_dir.join(KEYRING))
    }

    /// Where it is kept how far the database had come.
    pub fn mark(&self) -> PathBuf {
        let mark = self.vault.mark.clone();
        mark.unwrap_or_else(|| self.state_dir.join(MARK))
    }
}

/// Where a listener stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An address and port; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// The path of a unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(out),
            Self::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

impl Endpoint {
    /// Whether only processes of this machine can connect.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

/// `[listen]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The agents listener; `None` is off.
    pub agents: Option<Endpoint>,
    /// The egress listener, the forward proxy; `None` is off.
    pub egress: Option<SocketAddr>,
    /// The ops listener; `None` is off.
    pub ops: Option<SocketAddr>,
    /// The web listener; `None` is off.
    pub web: Option<SocketAddr>,
    /// Certificate and key of the agents, egress and web listeners; `None` is plain.
    pub tls: Option<Tls>,
    /// TLS ends in front of Tollgate.
    pub behind_tls: bool,
    /// Origins that browsers may send, beside our own; each `scheme://host[:port]`, lower case.
    pub allowed_origins: Vec<Arc<str>>,
}

impl Default for Listen {
    fn default() -> Self {
        let loopback = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Self {
            agents: Some(Endpoint::Tcp(loopback(8700))),
            egress: Some(loopback(8701)),
            ops: Some(loopback(8702)),
            web: Some(loopback(8703)),
            tls: None,
            behind_tls: false,
            allowed_origins: Vec::new(),
        }
    }
}

/// `listen.tls`: where certificate chain and key are kept, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The chain, leaf first.
    pub cert: Source,
    /// The private key.
    pub key: Source,
}

/// `[identity]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Who administers.
    pub admins: Admins,
    /// How callers show who they are.
    pub method: Method,
}

/// How callers show who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// `[identity.local]`: they do not; every caller is this user.
    Local {
        /// The user.
        user: Arc<str>,
        /// The user's tenant.
        tenant: Arc<str>,
    },
    /// `[identity.keys]`: agent keys of `keys.toml`.
    Keys,
}

impl fmt::Display for Method {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local { user, .. } => {
                write!(out, "local (everyone is `{user}`, without a credential)")
            }
            Self::Keys => out.write_str("keys"),
        }
    }
}

impl Default for Method {
    fn default() -> Self {
        Self::Local {
            user: "local".into(),
            tenant: DEFAULT_TENANT.into(),
        }
    }
}

/// `audit.on_failure`: what stops when records cannot be kept. Side effects always do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Reads stop too.
    #[default]
    Stop,
    /// Reads go on.
    Reads,
}

/// `[audit]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// What stops when records cannot be kept.
    pub on_failure: OnFailure,
}

/// `[limits]`; a server's file may set its own for the last five.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's body at most.
    pub request_bytes: usize,
    /// Bytes of an answer read at most, after decoding.
    pub response_bytes: usize,
    /// Until a connection stands.
    pub connect: Duration,
    /// From the last byte of a request to the first of its answer.
    pub first_byte: Duration,
    /// Between two pieces of an open stream.
    pub idle: Duration,
    /// The whole call.
    pub call: Duration,
    /// Calls of one conversation that run at once.
    pub running: usize,
    /// Calls of one conversation that wait.
    pub waiting: usize,
    /// Bytes of all results of a turn.
    pub turn_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes: 1 << 20,
            response_bytes: 4 << 20,
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(30),
            idle: Duration::from_secs(30),
            call: Duration::from_secs(60),
            running: 4,
            waiting: 4,
            turn_bytes: 512 << 10,
        }
    }
}

/// `[egress.parent]`: the proxy that the forward proxy goes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Where it is: an http origin, in its canonical form.
    pub url: Arc<str>,
    /// `parent_resolves`: whether it is given names to resolve, rather than judged addresses.
    pub resolves: bool,
}

/// `[dns]`; without servers those of `/etc/resolv.conf` are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dns {
    /// Name servers for everything that no zone covers.
    pub servers: Vec<SocketAddr>,
    /// Name servers for single zones.
    pub zones: Vec<Zone>,
}

/// A `[[dns.zone]]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The zone's name, in lower case and without dots at its ends.
    pub suffix: Arc<str>,
    /// Whom to ask about it.
    pub servers: Vec<SocketAddr>,
}

#[cfg(test)]
mod tests;
