//! A destination: scheme, host and port, parsed once.

use std::{borrow::Cow, fmt};

use super::{Host, host};
use crate::refusal::Code;

/// The schemes that Tollgate sends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Scheme {
    /// As a URL begins.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that a URL need not spell.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Where a request goes: the only thing that `egress` resolves. Made only by this file's parsers.
///
/// Prints as a URL without a path; the print parses to an equal target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    scheme: Scheme,
    host: Host,
    port: u16,
}

impl Target {
    /// Reads a URL that an operator wrote (IDN accepted and stored as its A-label).
    ///
    /// # Errors
    ///
    /// [`Malformed`] for anything but an absolute http or https URL without userinfo and fragment.
    pub fn from_operator(url: &str) -> Result<Self, Malformed> {
        Self::from_operator_with_path(url).map(|(target, _)| target)
    }

    /// Reads a URL that an operator wrote, with its path and query exactly as written. What is returned begins with
    /// `/`: an absent path is `/`, and a query without a path gets one (RFC 9112 section 3.2.1).
    ///
    /// # Errors
    ///
    /// As [`Target::from_operator`].
    pub fn from_operator_with_path(url: &str) -> Result<(Self, Cow<'_, str>), Malformed> {
        let (scheme, authority, path) = split(url)?;
        let target = Self::from_parts(scheme, authority, Some(scheme.default_port()))?;
        graphic_ascii(path)?;
        Ok((target, rooted(path)))
    }

    /// Reads a URL that came over the wire: ASCII only.
    ///
    /// # Errors
    ///
    /// As [`Target::from_operator`], and for everything that is not graphic ASCII.
    pub fn from_wire(url: &str) -> Result<Self, Malformed> {
        Self::from_wire_with_path(url).map(|(target, _)| target)
    }

    /// Reads a URL that came over the wire, with its path and query as [`Target::from_operator_with_path`] returns them.
    ///
    /// # Errors
    ///
    /// As [`Target::from_wire`].
    pub fn from_wire_with_path(url: &str) -> Result<(Self, Cow<'_, str>), Malformed> {
        graphic_ascii(url)?;
        let (scheme, authority, path) = split(url)?;
        let target = Self::from_parts(scheme, authority, Some(scheme.default_port()))?;
        Ok((target, rooted(path)))
    }

    /// Reads a CONNECT authority, `host:port` (RFC 9110 section 9.3.6); the scheme of a tunnel is https.
    ///
    /// # Errors
    ///
    /// [`Malformed`] for anything else, a missing port included.
    pub fn from_authority(authority: &str) -> Result<Self, Malformed> {
        graphic_ascii(authority)?;
        Self::from_parts(Scheme::Https, authority, None)
    }

    /// The scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host, as it will stand in `Host`, SNI and certificate verification.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port, never 0.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The value of a `Host` header: the port only where it is not the scheme's own.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Whether the value of a `Host` header names this destination. It may leave the port out.
    pub fn is_named_by(&self, host: &str) -> bool {
        let named =
            graphic_ascii(host).and_then(|()| Self::from_parts(self.scheme, host, Some(self.port)));
        named.is_ok_and(|named| named == *self)
    }

    fn from_parts(
        scheme: Scheme,
        authority: &str,
        default_port: Option<u16>,
    ) -> Result<Self, Malformed> {
        if authority.contains('@') {
            return Err(Malformed(
                "a user name or password stands before the host; leave it out and configure credentials instead".into(),
            ));
        }
        let (host, port) = split_port(authority);
        let port = match (port, default_port) {
            (Some(text), _) => parse_port(text)?,
            (None, Some(port)) => port,
            (None, None) => {
                return Err(Malformed(format!(
                    "`{}` has no port; write `host:port`",
                    shown(authority)
                )));
            }
        };
        Ok(Self {
            scheme,
            host: Host::from_url(&host::to_ascii(host)?)?,
            port,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://{}", self.scheme.as_str(), self.authority())
    }
}

/// Text that names no destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub(super) String);

impl Malformed {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        Code::BadTarget
    }
}

/// Foreign text for a message: escaped, and cut after 80 characters.
pub(super) fn shown(text: &str) -> String {
    let mut cut: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    if text.chars().nth(80).is_some() {
        cut.push('…');
    }
    cut
}

/// Splits an absolute URL into scheme, authority, and path with query.
fn split(url: &str) -> Result<(Scheme, &str, &str), Malformed> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(Malformed(
            "the URL is not absolute; write `https://host/path`".into(),
        ));
    };
    let scheme = if scheme.eq_ignore_ascii_case("https") {
        Scheme::Https
    } else if scheme.eq_ignore_ascii_case("http") {
        Scheme::Http
    } else {
        return Err(Malformed(format!(
            "scheme `{}` is neither http nor https",
            shown(scheme)
        )));
    };
    if rest.contains('#') {
        return Err(Malformed(
            "a fragment (`#…`) is never sent; leave it out".into(),
        ));
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    Ok((scheme, authority, path))
}

/// A path with its query, made to begin with `/`.
fn rooted(path: &str) -> Cow<'_, str> {
    if path.starts_with('/') {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(format!("/{path}"))
    }
}

/// Refuses what parsers read differently: control bytes, spaces, backslashes, and everything outside ASCII. The text is not
/// shown: it may hold a password, or a token in its query.
fn graphic_ascii(text: &str) -> Result<(), Malformed> {
    match text.chars().find(|c| !c.is_ascii_graphic() || *c == '\\') {
        None => Ok(()),
        Some(bad) => Err(Malformed(format!(
            "the target contains `{}`; percent-encode it in a path, leave it out of a host",
            bad.escape_debug()
        ))),
    }
}

/// Splits at the colon before the port; colons inside brackets belong to the address.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    let after_address = authority.rfind(']').map_or(0, |at| at + 1);
    match authority[after_address..].find(':') {
        Some(at) => {
            let (host, port) = authority.split_at(after_address + at);
            (host, Some(&port[1..]))
        }
        None => (authority, None),
    }
}

fn parse_port(text: &str) -> Result<u16, Malformed> {
    let canonical = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(port) if canonical => Ok(port),
        _ => Err(Malformed(format!(
            "port `{}` is not a number from 1 to 65535",
            shown(text)
        ))),
    }
}
