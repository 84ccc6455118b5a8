//! Where a browser may be sent back to when a flow has ended, and what it takes along.

use std::sync::Arc;

use url::Url;

/// Bytes of such a URL at most.
const LONGEST: usize = 2048;

/// How a flow ended, as the place it goes back to is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// There is a connection.
    Connected,
    /// The person, or the provider, said no.
    Denied,
    /// Something else went wrong.
    Failed,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

/// `wanted` as browsers understand it, where it lies below one of `places`: of the same origin, and in the same path or
/// below it, segment by segment.
pub(super) fn allowed(places: &[Arc<str>], wanted: &str) -> Option<String> {
    let odd = |byte: u8| !byte.is_ascii_graphic() || byte == b'\\';
    if wanted.len() > LONGEST || wanted.bytes().any(odd) {
        return None;
    }
    let url = Url::parse(wanted).ok()?;
    places
        .iter()
        .filter_map(|place| Url::parse(place).ok())
        .any(|place| below(&place, &url))
        .then(|| url.into())
}

fn below(place: &Url, url: &Url) -> bool {
    let whole = place.query().is_some();
    matches!(url.scheme(), "https" | "http")
        && url.origin() == place.origin()
        && url.username().is_empty()
        && url.password().is_none()
        && !hides_segments(url.path())
        && (if whole {
            (url.path(), url.query()) == (place.path(), place.query())
        } else {
            path_below(place.path(), url.path())
        })
}

/// What some servers decode to another path than the one that was compared.
fn hides_segments(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    ["%2f", "%5c", "%2e", "%00"]
        .iter()
        .any(|code| path.contains(code))
}

fn path_below(place: &str, path: &str) -> bool {
    match path.strip_prefix(place) {
        Some(rest) => rest.is_empty() || place.ends_with('/') || rest.starts_with('/'),
        None => false,
    }
}

/// `place` with `status` and `server` in its query, once each.
pub(super) fn told(place: &str, status: Status, server: &str) -> Option<String> {
    let mut url = Url::parse(place).ok()?;
    let ours = |name: &str| name == "status" || name == "server";
    if url.query_pairs().any(|(name, _)| ours(&name)) {
        let others: Vec<_> = url
            .query_pairs()
            .filter(|(name, _)| !ours(name))
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        url.query_pairs_mut().clear().extend_pairs(others);
    }
    url.query_pairs_mut()
        .append_pair("status", status.as_str())
        .append_pair("server", server);
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(places: &[&str], wanted: &str) -> Option<String> {
        let places: Vec<Arc<str>> = places.iter().map(|place| Arc::from(*place)).collect();
        allowed(&places, wanted)
    }

    #[test]
    fn what_lies_below_a_place_is_allowed() {
        for (place, wanted) in [
            ("https://app.example.com/", "https://app.example.com/"),
            (
                "https://app.example.com/",
                "https://app.example.com/a/b?x=1#y",
            ),
            ("https://app.example.com", "https://app.example.com/a"),
            ("https://app.example.com/", "https://app.example.com:443/a"),
            ("https://app.example.com/in", "https://app.example.com/in"),
            ("https://app.example.com/in", "https://app.example.com/in?x"),
            ("https://app.example.com/in", "https://app.example.com/in/a"),
            (
                "https://app.example.com/in/",
                "https://app.example.com/in/a",
            ),
            ("http://127.0.0.1:3000/", "http://127.0.0.1:3000/done"),
            ("https://a.example/x?y=1", "https://a.example/x?y=1"),
        ] {
            assert!(allows(&[place], wanted).is_some(), "{place} {wanted}");
        }
        let places = ["https://one.example/", "https://two.example/"];
        assert!(allows(&places, "https://two.example/a").is_some());
    }

    #[test]
    fn no_trick_leads_anywhere_else() {
        for wanted in [
            "https://app.example.com.evil.test/in/",
            "https://app.example.com@evil.test/in/",
            "https://evil.test/https://app.example.com/in/",
            "https://app.example.com:8443/in/",
            "http://app.example.com/in/",
            "https://APP.example.com\\@evil.test/in/",
            "https://app.example.com\\.evil.test/in/",
            "https:\\\\evil.test/in/",
            "//evil.test/in/",
            "/in/",
            "javascript:alert(1)//https://app.example.com/in/",
            "data:text/html,https://app.example.com/in/",
            "https://app.example.com/inner",
            "https://app.example.com/in/../admin",
            "https://app.example.com/in/%2e%2e/admin",
            "https://app.example.com/in/..%2fadmin",
            "https://app.example.com/in/..%5Cadmin",
            "https://app.example.com/in/%00",
            "https://app.example.com/",
            "https://user@app.example.com/in/",
            "https://user:word@app.example.com/in/",
            "https://app.example.com/in/\r\nSet-Cookie: a=b",
            "https://app.example.com/in/\u{202e}",
            "\thttps://app.example.com/in/",
            "",
        ] {
            assert_eq!(
                allows(&["https://app.example.com/in"], wanted),
                None,
                "{wanted:?}"
            );
        }
        assert_eq!(allows(&[], "https://app.example.com/"), None);
        let long = format!("https://app.example.com/in/{}", "a".repeat(2048));
        assert_eq!(allows(&["https://app.example.com/in"], &long), None);
        let place = "https://a.example/x?y=1";
        assert_eq!(allows(&[place], "https://a.example/x?y=12"), None);
    }

    #[test]
    fn the_place_is_told_how_it_ended_once() {
        let told = |place, status| told(place, status, "jira").unwrap();
        assert_eq!(
            told("https://a.example/in", Status::Connected),
            "https://a.example/in?status=connected&server=jira"
        );
        assert_eq!(
            told("https://a.example/in?x=1#part", Status::Denied),
            "https://a.example/in?x=1&status=denied&server=jira#part"
        );
        assert_eq!(
            told(
                "https://a.example/?status=connected&x=1&server=other",
                Status::Failed
            ),
            "https://a.example/?x=1&status=failed&server=jira"
        );
    }
}
