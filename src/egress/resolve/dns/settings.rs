//! Which name servers are asked, and how long is waited for them.

use std::{net::SocketAddr, time::Duration};

use hickory_resolver::{net::NetError, system_conf};

/// Which name servers to ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DnsSettings {
    /// Servers for every name that no zone covers.
    pub servers: Vec<SocketAddr>,
    /// Suffixes with servers of their own; the longest that fits wins.
    pub zones: Vec<Zone>,
    /// How long to wait.
    pub patience: Patience,
}

/// A suffix and the servers that answer for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// For example `corp.example`; it covers itself and every name below.
    pub suffix: String,
    /// Who is asked.
    pub servers: Vec<SocketAddr>,
}

/// How long a lookup may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Both families together.
    pub whole: Duration,
    /// One family, once the other has an answer.
    pub behind: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            whole: Duration::from_secs(5),
            behind: Duration::from_secs(1),
        }
    }
}

/// A resolver that cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum DnsSetupError {
    /// `/etc/resolv.conf` cannot be used.
    #[error("/etc/resolv.conf names no usable name server; set `[dns] servers`")]
    System(#[source] NetError),
    /// There is nobody to ask.
    #[error("no name server for `{0}`; set `[dns] servers`")]
    NoServers(String),
    /// The settings do not fit together.
    #[error("the resolver for `{zone}` cannot be built")]
    Build {
        /// The zone, or `.`.
        zone: String,
        /// Why.
        source: NetError,
    },
}

impl DnsSettings {
    /// The name servers of `/etc/resolv.conf`, on port 53; its search list and options are ignored.
    pub fn from_system() -> Result<Self, DnsSetupError> {
        let (config, _) = system_conf::read_system_conf().map_err(DnsSetupError::System)?;
        Ok(Self {
            servers: config
                .name_servers()
                .iter()
                .map(|server| (server.ip, 53).into())
                .collect(),
            ..Self::default()
        })
    }
}
