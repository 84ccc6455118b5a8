//! The `allowlist` of a case: hosts that may be reached, and private grants.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::address::{Grant, Host, Leg, Name, Port, Target};

/// An entry, compiled.
#[derive(Debug)]
pub(super) enum Entry {
    /// `*`: every public host, on ports 80 and 443.
    Public,
    /// `host` or `host:port`.
    Host(Host, Option<u16>),
    /// `*.host` or `*.host:port`: every name below, not `host` itself.
    Below(Name, Option<u16>),
    /// `private:host:port`, perhaps with `=CIDR,…`.
    Private(Grant),
}

impl Entry {
    /// Reads an entry; the text says what is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Public);
        }
        if let Some(rest) = text.strip_prefix("private:") {
            return private(text, rest).map(Self::Private);
        }
        let bare = text.strip_prefix("*.");
        let (host, port) = host_and_port(bare.unwrap_or(text))?;
        match (bare, host) {
            (None, host) => Ok(Self::Host(host, port)),
            (Some(_), Host::Name(suffix)) if suffix.as_str().contains('.') => {
                Ok(Self::Below(suffix, port))
            }
            _ => Err(format!(
                "`{text}` covers too much; `*.` needs a name of two labels or more"
            )),
        }
    }

    /// The private grant that it is, if it is one.
    pub(super) fn grant(&self) -> Option<&Grant> {
        match self {
            Self::Private(grant) => Some(grant),
            _ => None,
        }
    }

    /// Whether the entry lets `target` be asked for.
    pub(super) fn covers(&self, target: &Target) -> bool {
        let on = |port: &Option<u16>| {
            port.unwrap_or_else(|| target.scheme().default_port()) == target.port()
        };
        match self {
            Self::Public => matches!(target.port(), 80 | 443),
            Self::Host(host, port) => host == target.host() && on(port),
            Self::Below(suffix, port) => {
                matches!(target.host(), Host::Name(name) if name.is_below(suffix.as_str()))
                    && on(port)
            }
            Self::Private(grant) => {
                grant.host == *target.host() && grant.port == Port::Exact(target.port())
            }
        }
    }
}

fn host_and_port(text: &str) -> Result<(Host, Option<u16>), String> {
    match Target::from_authority(text) {
        Ok(target) => Ok((target.host().clone(), Some(target.port()))),
        Err(_) => Host::from_operator(text)
            .map(|host| (host, None))
            .map_err(|error| error.to_string()),
    }
}

fn private(text: &str, rest: &str) -> Result<Grant, String> {
    let (authority, nets) = match rest.split_once('=') {
        Some((authority, nets)) => (authority, nets.split(',').map(net).collect()),
        None => (rest, Ok(Vec::new())),
    };
    let target = Target::from_authority(authority).map_err(|error| error.to_string())?;
    Ok(Grant {
        host: target.host().clone(),
        port: Port::Exact(target.port()),
        addresses: nets?,
        address: None,
        legs: vec![Leg::Proxy],
        origin: text.into(),
    })
}

fn net(text: &str) -> Result<IpNet, String> {
    let single = || text.parse().map(|address: IpAddr| IpNet::from(address));
    text.parse::<IpNet>()
        .or_else(|_| single())
        .map_err(|_| format!("`{text}` is not an address range; write 10.20.0.0/16"))
}
