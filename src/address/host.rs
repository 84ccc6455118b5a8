//! Host names and literals, in the only form that is compared.

use std::{
    borrow::Cow,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
    sync::Arc,
};

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use super::{Malformed, names, target::shown};

/// A DNS name: lower-case A-labels, letters, digits, `-` and `_`, no trailing dot, at most 253 octets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// The text, without a trailing dot.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands for this machine, and is never asked for (RFC 6761, section 6.3).
    pub fn is_localhost(&self) -> bool {
        names::is_localhost(self)
    }

    /// Whether the name lies below `suffix`, at a label boundary; `suffix` itself does not.
    pub fn is_below(&self, suffix: &str) -> bool {
        self.0
            .strip_suffix(suffix)
            .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// What stands where a URL names its host. Prints as a URL spells it, IPv6 in brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name, to be resolved.
    Name(Name),
    /// An address literal.
    Ip(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(out),
            Self::Ip(IpAddr::V4(address)) => address.fmt(out),
            Self::Ip(IpAddr::V6(address)) => write!(out, "[{address}]"),
        }
    }
}

impl Host {
    /// Whether it is this machine itself, without asking anybody.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name.is_localhost(),
            Self::Ip(address) => address.is_loopback(),
        }
    }

    /// As it prints.
    pub fn to_text(&self) -> Arc<str> {
        match self {
            Self::Name(name) => name.0.clone(),
            Self::Ip(_) => self.to_string().into(),
        }
    }

    /// Reads a host that an operator wrote, alone: a name (IDN accepted and kept as its A-label) or an address,
    /// IPv6 with or without brackets.
    ///
    /// # Errors
    ///
    /// [`Malformed`] says what is wrong with the text.
    pub fn from_operator(text: &str) -> Result<Self, Malformed> {
        match text.parse::<Ipv6Addr>() {
            Ok(address) => Ok(Self::Ip(address.into())),
            Err(_) => Self::from_url(&to_ascii(text)?),
        }
    }

    /// Reads a host as a URL, an authority or a server name indication spells it: ASCII, IPv6 in brackets.
    ///
    /// # Errors
    ///
    /// [`Malformed`] says what is wrong with the text.
    pub fn from_url(text: &str) -> Result<Self, Malformed> {
        match text.strip_prefix('[') {
            Some(rest) => bracketed(rest).map(|address| Self::Ip(address.into())),
            None => name_or_ipv4(text),
        }
    }
}

/// Maps the labels of an operator's host that are not ASCII to A-labels (RFC 5891 by way of UTS 46).
///
/// A label must already be written as it maps: one that UTS 46 would rewrite (full-width digits, invisible
/// characters, other dots) reads as one host and means another.
pub(super) fn to_ascii(host: &str) -> Result<Cow<'_, str>, Malformed> {
    if host.is_ascii() {
        return Ok(host.into());
    }
    let labels: Result<Vec<String>, Malformed> = host.split('.').map(label_to_ascii).collect();
    Ok(labels?.join(".").into())
}

fn label_to_ascii(label: &str) -> Result<String, Malformed> {
    if label.is_ascii() {
        return Ok(label.to_owned());
    }
    let refused = || {
        Malformed(format!(
            "host label `{}` is not a valid internationalized label in its normal form; write its A-label (xn--…)",
            shown(label)
        ))
    };
    let uts46 = Uts46::new();
    let ascii = uts46
        .to_ascii(
            label.as_bytes(),
            AsciiDenyList::URL,
            Hyphens::Check,
            DnsLength::Verify,
        )
        .map_err(|_| refused())?;
    let (unicode, valid) = uts46.to_unicode(ascii.as_bytes(), AsciiDenyList::URL, Hyphens::Check);
    if valid.is_err() || unicode != label.to_lowercase() {
        return Err(refused());
    }
    Ok(ascii.into_owned())
}

/// The rest of `[address]` after its opening bracket; zone identifiers are no part of a URL's host here.
fn bracketed(rest: &str) -> Result<Ipv6Addr, Malformed> {
    rest.strip_suffix(']')
        .and_then(|inner| Ipv6Addr::from_str(inner).ok())
        .ok_or_else(|| {
            Malformed(format!(
                "host `[{}` is not an IPv6 address in brackets; write `[2001:db8::1]` without a zone",
                shown(rest)
            ))
        })
}

fn name_or_ipv4(text: &str) -> Result<Host, Malformed> {
    let refused = |why: &str| Err(Malformed(format!("host `{}` {why}", shown(text))));
    let bare = text.strip_suffix('.').unwrap_or(text);
    if bare.is_empty() {
        return refused("is empty; name a host");
    }
    if bare.len() > 253 {
        return refused("is longer than 253 octets");
    }
    if let Some(bad) = bare
        .chars()
        .find(|&c| !(c.is_ascii_alphanumeric() || "-_.".contains(c)))
    {
        return refused(&format!(
            "contains `{}`; letters, digits, `-`, `_` and `.` may stand in a host",
            bad.escape_debug()
        ));
    }
    for label in bare.split('.') {
        if label.is_empty() || label.len() > 63 {
            return refused("has a label that is empty or longer than 63 octets");
        }
        if label.starts_with('-') || label.ends_with('-') {
            return refused("has a label that begins or ends with `-`");
        }
    }
    if !ends_in_a_number(bare) {
        return Ok(Host::Name(Name(bare.to_ascii_lowercase().into())));
    }
    match Ipv4Addr::from_str(text) {
        Ok(address) => Ok(Host::Ip(address.into())),
        Err(_) => refused(
            "ends in a number but is not an IPv4 address; write four decimal numbers without leading zeros",
        ),
    }
}

/// Whether some parser could take the host for an IPv4 address (WHATWG URL, "ends in a number").
fn ends_in_a_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host).as_bytes();
    match last {
        [b'0', b'x' | b'X', digits @ ..] => digits.iter().all(u8::is_ascii_hexdigit),
        digits => digits.iter().all(u8::is_ascii_digit),
    }
}
