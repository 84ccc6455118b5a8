//! `Host` and `Origin`: a page of another site must not reach a listener through a name that it controls (MCP
//! transports, security; DNS rebinding).

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use http::{HeaderMap, HeaderValue, Uri, header};

use super::Peer;
use crate::refusal::{Code, Refusal};

/// The names and origins of a listener.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Host of `public_url`, where there is one.
    public_host: Option<String>,
    /// `listen.allowed_origins`.
    allowed: Vec<Arc<str>>,
    /// Whether clients reach the listener by https: its own TLS, or a proxy's.
    https: bool,
}

impl Origins {
    /// A listener known by the host of `public_url` (an origin) beside its own address and `localhost`.
    pub fn new(public_url: Option<&str>, allowed: Vec<Arc<str>>, https: bool) -> Self {
        let authority = public_url.and_then(|url| Some(url.split_once("://")?.1));
        Self {
            public_host: authority.and_then(name_of).map(str::to_owned),
            allowed,
            https,
        }
    }

    /// Judges where a request thinks it goes and where it says it comes from.
    ///
    /// # Errors
    ///
    /// [`Code::BadHead`] without exactly one readable `Host`, else [`Code::BadHost`] or [`Code::BadOrigin`].
    pub fn judge(&self, uri: &Uri, headers: &HeaderMap, peer: Peer) -> Result<(), Refusal> {
        let host = single(headers, &header::HOST, Code::BadHead)?
            .ok_or_else(|| Refusal::new(Code::BadHead, "the request has no `Host`"))?;
        for authority in [
            Some(host),
            uri.authority().map(http::uri::Authority::as_str),
        ]
        .into_iter()
        .flatten()
        {
            if !self.is_own(authority, peer) {
                let public = format!(
                    "`{}` is not a name of this listener",
                    authority.escape_debug()
                );
                return Err(Refusal::new(Code::BadHost, public));
            }
        }
        match single(headers, &header::ORIGIN, Code::BadOrigin)? {
            Some(origin) if !self.is_allowed(origin, host) => {
                let public = format!("origin `{}` is not allowed", origin.escape_debug());
                Err(Refusal::new(Code::BadOrigin, public))
            }
            _ => Ok(()),
        }
    }

    fn is_own(&self, authority: &str, peer: Peer) -> bool {
        let Some(name) = name_of(authority) else {
            return false;
        };
        let is_ip = |ip: IpAddr| {
            let local = peer.local.map(|local| local.ip().to_canonical());
            ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST || Some(ip) == local
        };
        name.eq_ignore_ascii_case("localhost")
            || name.parse().is_ok_and(is_ip)
            || (self.public_host.as_ref()).is_some_and(|own| own.eq_ignore_ascii_case(name))
    }

    /// Our own origin is the very host and port that the request reached: another port of `localhost` is another
    /// program.
    fn is_allowed(&self, origin: &str, host: &str) -> bool {
        let scheme = if self.https { "https://" } else { "http://" };
        let own = origin
            .strip_prefix(scheme)
            .is_some_and(|rest| rest.eq_ignore_ascii_case(host));
        own || self
            .allowed
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }
}

/// The host of `host[:port]`, an IPv6 address without its brackets.
fn name_of(authority: &str) -> Option<&str> {
    let (name, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => {
            let colon = authority.bytes().position(|byte| byte == b':');
            authority.split_at(colon.unwrap_or(authority.len()))
        }
    };
    let port_is_fine = match port.strip_prefix(':') {
        Some(port) => port.parse::<u16>().is_ok(),
        None => port.is_empty(),
    };
    (port_is_fine && !name.is_empty()).then_some(name)
}

fn single<'a>(
    headers: &'a HeaderMap,
    name: &header::HeaderName,
    code: Code,
) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(HeaderValue::to_str);
    match (first, values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(text)), None) => Ok(Some(text)),
        _ => Err(Refusal::new(
            code,
            format!("`{name}` must stand once, in ASCII"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(origins: &Origins, uri: &str, headers: &[(&'static str, &str)]) -> Option<Code> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let peer = Peer {
            local: Some("[::ffff:10.0.0.7]:8700".parse().unwrap()),
            remote: None,
        };
        origins
            .judge(&uri.parse().unwrap(), &map, peer)
            .err()
            .map(|refusal| refusal.code)
    }

    fn host(origins: &Origins, host: &str) -> Option<Code> {
        judge(origins, "/mcp/x", &[("host", host)])
    }

    #[test]
    fn own_names_are_the_address_localhost_and_the_public_host() {
        let public = Origins::new(Some("https://tollgate.example.com:8443"), Vec::new(), true);
        for own in [
            "localhost:8700",
            "LOCALHOST",
            "127.0.0.1:1",
            "[::1]:8700",
            "10.0.0.7:8700",
            "Tollgate.example.com",
        ] {
            assert_eq!(host(&public, own), None, "{own}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example",
            "10.0.0.8",
            "127.0.0.2",
            "localhost:x",
            "[::1",
            "",
            "a@localhost",
        ] {
            assert_eq!(host(&public, other), Some(Code::BadHost), "{other}");
        }
        assert_eq!(
            host(&Origins::default(), "tollgate.example.com"),
            Some(Code::BadHost)
        );
    }

    #[test]
    fn host_stands_once_and_agrees_with_the_target() {
        let none = Origins::default();
        assert_eq!(judge(&none, "/", &[]), Some(Code::BadHead));
        assert_eq!(
            judge(&none, "/", &[("host", "localhost"); 2]),
            Some(Code::BadHead)
        );
        let absolute = "http://evil.example/mcp/x";
        assert_eq!(
            judge(&none, absolute, &[("host", "localhost")]),
            Some(Code::BadHost)
        );
    }

    #[test]
    fn an_origin_is_absent_own_or_listed() {
        let origins = Origins::new(None, vec!["https://app.example.com".into()], false);
        let from = |origin| {
            judge(
                &origins,
                "/",
                &[("host", "localhost:8700"), ("origin", origin)],
            )
        };
        assert_eq!(from("http://localhost:8700"), None);
        assert_eq!(from("https://app.example.com"), None);
        for other in [
            "http://localhost:3000",
            "https://localhost:8700",
            "null",
            "http://evil.example",
            "",
        ] {
            assert_eq!(from(other), Some(Code::BadOrigin), "{other}");
        }
    }
}
