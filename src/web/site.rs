//! Where the pages are, by `public_url`, and whether a request was meant for them: another site's page must not reach
//! them through a name or a form of its own.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header, request::Parts};

use crate::refusal::{Code, Refusal};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The origin of the pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Site {
    /// `scheme://host[:port]`.
    origin: String,
    /// Host and port, the scheme's own port left out.
    authority: String,
    https: bool,
}

impl Site {
    /// The site of `public_url`, an origin.
    pub(super) fn new(public_url: &str) -> Self {
        let (scheme, authority) = public_url.split_once("://").unwrap_or(("http", public_url));
        let https = scheme == "https";
        let authority = plain(authority, https);
        Self {
            origin: format!("{scheme}://{authority}"),
            authority,
            https,
        }
    }

    /// Whether browsers reach it by https.
    pub(super) fn is_https(&self) -> bool {
        self.https
    }

    /// Judges where a request thinks it goes: where else it should go, if it only reads.
    ///
    /// # Errors
    ///
    /// No readable `Host`, or another site's name on something that is no mere reading.
    pub(super) fn judge(&self, head: &Parts) -> Result<Option<String>, Refusal> {
        let host = single(&head.headers, &header::HOST, Code::BadHead)?
            .ok_or_else(|| Refusal::new(Code::BadHead, "the request has no `Host`"))?;
        let target = head.uri.authority().map(http::uri::Authority::as_str);
        let own = |authority: &str| plain(authority, self.https) == self.authority;
        if own(host) && target.is_none_or(own) {
            return Ok(None);
        }
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        if matches!(head.method, Method::GET | Method::HEAD) && path.starts_with('/') {
            return Ok(Some(format!("{}{path}", self.origin)));
        }
        let public = format!("`{}` is not the name of these pages", host.escape_debug());
        Err(Refusal::new(Code::BadHost, public))
    }

    /// Judges where a form was sent from. Browsers say so with every form; programs need not.
    ///
    /// # Errors
    ///
    /// [`Code::WebCrossSite`]: from another site, or from a page that hides its own.
    pub(super) fn judge_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let origin = single(headers, &header::ORIGIN, Code::WebCrossSite)?;
        let site = single(headers, &SEC_FETCH_SITE, Code::WebCrossSite)?;
        let own = origin.is_none_or(|origin| origin.eq_ignore_ascii_case(&self.origin));
        // `none`: the person's own doing, such as a reload.
        if own && site.is_none_or(|site| matches!(site, "same-origin" | "none")) {
            return Ok(());
        }
        let public = "this form was sent from another site";
        Err(Refusal::new(Code::WebCrossSite, public))
    }
}

/// Host and port in lower case, without the port that the scheme has anyway.
fn plain(authority: &str, https: bool) -> String {
    let port = if https { ":443" } else { ":80" };
    let plain = authority.strip_suffix(port).unwrap_or(authority);
    plain.to_ascii_lowercase()
}

fn single<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
    code: Code,
) -> Result<Option<&'h str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(HeaderValue::to_str);
    match (first, values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(text)), None) => Ok(Some(text)),
        _ => {
            let public = format!("`{name}` must stand once, in ASCII");
            Err(Refusal::new(code, public))
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(method: &str, uri: &str, headers: &[(&'static str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn there(site: &Site, uri: &str, host: &str) -> Option<String> {
        site.judge(&head("GET", uri, &[("host", host)])).unwrap()
    }

    #[test]
    fn another_host_is_sent_to_the_public_one() {
        let site = Site::new("https://tollgate.example.com");
        for own in ["tollgate.example.com", "TOLLGATE.example.com:443"] {
            assert_eq!(there(&site, "/", own), None, "{own}");
        }
        for other in [
            "localhost",
            "tollgate.example.com:8703",
            "tollgate.example.com:80",
            "",
        ] {
            assert_eq!(
                there(&site, "/oauth/callback?code=1", other).as_deref(),
                Some("https://tollgate.example.com/oauth/callback?code=1"),
                "{other}"
            );
        }
        let local = Site::new("http://127.0.0.1:8703");
        assert_eq!(there(&local, "/", "127.0.0.1:8703"), None);
        assert_eq!(
            there(&local, "//evil.example/", "localhost:8703").as_deref(),
            Some("http://127.0.0.1:8703//evil.example/")
        );
        assert_eq!(
            there(&local, "http://evil.example/x", "127.0.0.1:8703").as_deref(),
            Some("http://127.0.0.1:8703/x")
        );
    }

    #[test]
    fn what_changes_something_is_not_sent_elsewhere() {
        let site = Site::new("http://127.0.0.1:8703");
        let refused = |headers: &[_]| {
            site.judge(&head("POST", "/login", headers))
                .unwrap_err()
                .code
        };
        assert_eq!(refused(&[("host", "localhost:8703")]), Code::BadHost);
        assert_eq!(refused(&[]), Code::BadHead);
        let twice = [("host", "127.0.0.1:8703"); 2];
        assert_eq!(refused(&twice), Code::BadHead);
    }

    #[test]
    fn forms_come_from_our_own_pages() {
        let site = Site::new("http://127.0.0.1:8703");
        let judge = |headers: &[_]| site.judge_origin(&head("POST", "/", headers).headers);
        for own in [
            &[][..],
            &[("origin", "http://127.0.0.1:8703")],
            &[
                ("origin", "http://127.0.0.1:8703"),
                ("sec-fetch-site", "same-origin"),
            ],
            &[("sec-fetch-site", "none")],
        ] {
            assert_eq!(judge(own), Ok(()), "{own:?}");
        }
        for other in [
            &[("origin", "http://127.0.0.1:3000")][..],
            &[("origin", "https://127.0.0.1:8703")],
            &[("origin", "null")],
            &[("origin", "")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[
                ("origin", "http://127.0.0.1:8703"),
                ("sec-fetch-site", "cross-site"),
            ],
            &[("origin", "http://127.0.0.1:8703"); 2],
        ] {
            let refusal = judge(other).unwrap_err();
            assert_eq!(refusal.code, Code::WebCrossSite, "{other:?}");
        }
    }
}
