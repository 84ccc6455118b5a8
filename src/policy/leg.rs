//! What Tollgate itself fetches for the OAuth of a server: which URLs are fit for it at all.

use std::sync::Arc;

use super::{Endpoint, Permit, Server, Trust};
use crate::{
    address::{Leg, Rules, Scheme, Target},
    refusal::{Code, Refusal},
    subject::Owner,
};

/// Proof that policy lets Tollgate fetch one URL for the OAuth of a server. Made only by [`Permit::fetch`]; demanded by
/// `egress`.
#[derive(Clone, Debug)]
pub struct LegPermit {
    server: Arc<Server>,
    endpoint: Endpoint,
    owner: Owner,
    generation: u64,
    addresses: Arc<Rules>,
}

impl Permit {
    /// Lets Tollgate fetch `url` for the OAuth of this server: https, or http to loopback where the file allows that.
    /// Where the URL came from does not matter: a private address is reached only by a grant that names its host for
    /// `oauth:NAME`.
    ///
    /// # Errors
    ///
    /// Anything else, and what is no absolute URL.
    pub fn fetch(&self, url: &str) -> Result<LegPermit, Refusal> {
        let server = self.server();
        let knobs = server.auth.oauth();
        let plain = knobs.is_some_and(|knobs| knobs.allow_http_loopback);
        let endpoint = fetchable(url, plain).map_err(|why| {
            let public = format!(
                "a URL of the OAuth of server `{}` is not used: {why}",
                server.name
            );
            Refusal::new(Code::ConnectUnusable, public)
        })?;
        Ok(LegPermit {
            server: server.clone(),
            endpoint,
            owner: self.owner().clone(),
            generation: self.generation(),
            addresses: self.addresses().clone(),
        })
    }
}

impl LegPermit {
    /// The server that it is for.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Where it goes.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whom to trust there: a server's `ca` files hold for every leg of it.
    pub fn trust(&self) -> &Trust {
        &self.server.trust
    }

    /// For whose connections.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The policy generation that decided.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The address rules of that generation.
    pub fn addresses(&self) -> &Arc<Rules> {
        &self.addresses
    }

    /// The leg that address rules see.
    pub fn leg(&self) -> Leg {
        Leg::OAuth(self.server.name.clone())
    }
}

/// Where `url` leads, if OAuth may use it: absolute, https, without userinfo and fragment; `plain` lets http to
/// loopback pass (RFC 8252, section 7.3). The error never repeats the URL, which may hold a secret.
pub(super) fn fetchable(url: &str, plain: bool) -> Result<Endpoint, String> {
    let (target, path) = Target::from_wire_with_path(url).map_err(|error| error.to_string())?;
    if target.scheme() == Scheme::Http {
        let host = target.host();
        if !host.is_loopback() {
            return Err(format!("`{host}` is named with plain http, expected https"));
        }
        if !plain {
            return Err(format!(
                "`{host}` is named with plain http; set allow_http_loopback = true in `[auth]` where that is meant"
            ));
        }
    }
    Endpoint::new(target, &path).map_err(|error| format!("its path cannot be requested: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_is_fetched_and_http_to_loopback_by_choice() {
        for (url, plain, fits) in [
            ("https://auth.example.com/token?x=1", false, true),
            ("https://10.0.0.7/token", false, true),
            ("http://127.0.0.1:9000/token", true, true),
            ("http://[::1]:9000/token", true, true),
            ("http://localhost/token", true, true),
            ("http://127.0.0.1:9000/token", false, false),
            ("http://auth.example.com/token", true, false),
            ("http://169.254.169.254/latest", true, false),
            ("http://10.0.0.7/token", true, false),
            ("https://u:p@auth.example.com/", false, false),
            ("https://auth.example.com/#x", false, false),
            ("javascript:alert(1)", true, false),
            ("data:text/html,x", true, false),
            ("file:///etc/passwd", true, false),
            ("//auth.example.com/token", true, false),
            ("/token", true, false),
            ("https://auth.example.com/a b", false, false),
            ("https://bücher.example/", false, false),
            ("https://auth.example.com\\@evil.test/", false, false),
            ("", true, false),
        ] {
            assert_eq!(fetchable(url, plain).is_ok(), fits, "{url}");
        }
    }

    #[test]
    fn what_is_refused_is_never_repeated() {
        let why = fetchable("http://auth.example.com/s3cret", true).unwrap_err();
        assert_eq!(
            why,
            "`auth.example.com` is named with plain http, expected https"
        );
        let why = fetchable("http://127.0.0.1/s3cret", false).unwrap_err();
        assert_eq!(
            why,
            "`127.0.0.1` is named with plain http; set allow_http_loopback = true in `[auth]` where that is meant"
        );
    }
}
