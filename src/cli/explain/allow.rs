//! The `allowlist` of a case: hosts that may be reached, and private grants.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{
    address::{Grant, Leg, Port, Target},
    policy::HostPattern,
};

/// An entry, compiled.
#[derive(Debug)]
pub(super) enum Entry {
    /// `*`: every public host, on ports 80 and 443.
    Public,
    /// As the `host` of an `[[allow]]` table.
    Host(HostPattern),
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
        HostPattern::read(text).map(Self::Host)
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
        match self {
            Self::Public => matches!(target.port(), 80 | 443),
            Self::Host(pattern) => pattern.covers(target),
            Self::Private(grant) => {
                grant.host == *target.host() && grant.port == Port::Exact(target.port())
            }
        }
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
