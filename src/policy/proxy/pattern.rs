//! The hosts of a rule: one, or all below a name.

use std::fmt;

use crate::address::{Host, Name, Target};

/// `host`, `*.host`, `host:port` or `*.host:port`; `*.host` covers names below `host`, and not `host` itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    /// This one.
    Exact(Host),
    /// Every name below this one.
    Below(Name),
}

impl HostPattern {
    /// Reads what an operator wrote.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, and what to write.
    pub fn read(text: &str) -> Result<Self, String> {
        let below = text.strip_prefix("*.");
        let bare = below.unwrap_or(text);
        if text == "*" || bare.contains('*') {
            return Err(format!(
                "`{text}` is no pattern of hosts; write a host, or `*.` before a name of two labels or more"
            ));
        }
        let (host, port) = host_and_port(bare)?;
        let hosts = match (below, host) {
            (None, host) => Hosts::Exact(host),
            (Some(_), Host::Name(suffix)) if suffix.as_str().contains('.') => Hosts::Below(suffix),
            _ => {
                return Err(format!(
                    "`{text}` covers too much; `*.` needs a name of two labels or more"
                ));
            }
        };
        Ok(Self { hosts, port })
    }

    /// The port, where one is written.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The one host that it covers, if it is one.
    pub fn exact(&self) -> Option<&Host> {
        match &self.hosts {
            Hosts::Exact(host) => Some(host),
            Hosts::Below(_) => None,
        }
    }

    /// Whether it covers `target`; without a port of its own, at the scheme's port only.
    pub fn covers(&self, target: &Target) -> bool {
        let default = target.scheme().default_port();
        self.port.unwrap_or(default) == target.port() && self.covers_host(target.host())
    }

    /// Whether it covers `host`, at whatever port.
    pub fn covers_host(&self, host: &Host) -> bool {
        match (&self.hosts, host) {
            (Hosts::Exact(own), host) => own == host,
            (Hosts::Below(suffix), Host::Name(name)) => name.is_below(suffix.as_str()),
            (Hosts::Below(_), Host::Ip(_)) => false,
        }
    }

    /// Whether it covers every host that `other` covers.
    pub(super) fn includes(&self, other: &Self) -> bool {
        match (&self.hosts, &other.hosts) {
            (_, Hosts::Exact(host)) => self.covers_host(host),
            (Hosts::Exact(_), Hosts::Below(_)) => false,
            (Hosts::Below(own), Hosts::Below(other)) => {
                own == other || other.is_below(own.as_str())
            }
        }
    }

    /// A host that it covers, to try rules with.
    pub(super) fn example(&self) -> Option<Host> {
        match &self.hosts {
            Hosts::Exact(host) => Some(host.clone()),
            Hosts::Below(suffix) => Host::from_operator(&format!("x.{suffix}")).ok(),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Exact(host) => host.fmt(out)?,
            Hosts::Below(suffix) => write!(out, "*.{suffix}")?,
        }
        match self.port {
            Some(port) => write!(out, ":{port}"),
            None => Ok(()),
        }
    }
}

fn host_and_port(text: &str) -> Result<(Host, Option<u16>), String> {
    if text.contains(['/', '?', '#']) {
        return Err(format!(
            "`{}` is more than a host; leave out scheme and path",
            text.escape_debug()
        ));
    }
    match Host::from_operator(text) {
        Ok(host) => Ok((host, None)),
        Err(error) if !text.contains(':') => Err(error.to_string()),
        Err(_) => Target::from_operator(&format!("https://{text}"))
            .map(|target| (target.host().clone(), Some(target.port())))
            .map_err(|error| error.to_string()),
    }
}
