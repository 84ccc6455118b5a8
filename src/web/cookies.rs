//! Cookies: on https their names begin with `__Host-`, which keeps other hosts and paths from setting them (RFC 6265bis,
//! section 4.1.3.2); on loopback http, where that is not to be had, they stand plain.

use http::{HeaderMap, HeaderValue, header};

/// How long a sign-in's cookie lasts, in seconds; what is kept of it ends sooner or as soon.
const SESSION: u32 = 7 * 24 * 60 * 60;
/// How long a browser may take to come back from a provider, in seconds.
const BINDING: u32 = 600;
/// How long a result can be looked at, in seconds.
const RESULT: u32 = 300;
/// Flows that one browser may have under way; the cookies of more would crowd all others out.
const BINDINGS: usize = 10;

/// The name before the digits of a flow.
const CONNECT: &str = "tollgate-connect-";

/// The cookies of a browser, for a site that it reaches by https or not.
pub(super) struct Cookies<'h> {
    https: bool,
    pairs: Vec<(&'h str, &'h str)>,
}

/// One of our cookies that stands alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// Who is signed in.
    Session,
    /// What came of what was done.
    Result,
}

impl Name {
    fn text(self) -> &'static str {
        match self {
            Self::Session => "tollgate-session",
            Self::Result => "tollgate-result",
        }
    }

    fn lasts(self) -> u32 {
        match self {
            Self::Session => SESSION,
            Self::Result => RESULT,
        }
    }
}

impl<'h> Cookies<'h> {
    pub(super) fn of(headers: &'h HeaderMap, https: bool) -> Self {
        let lines = headers.get_all(header::COOKIE).iter();
        let pairs = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .collect();
        Self { https, pairs }
    }

    /// The value of a cookie. One that stands twice is none: somebody else on this host has set one of the two.
    pub(super) fn get(&self, name: Name) -> Option<&'h str> {
        let named = self.named(name.text());
        let mut values = self.pairs.iter().filter(|(found, _)| *found == named);
        match (values.next(), values.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }

    /// The cookies that bind flows: the digits of each, and its value.
    pub(super) fn bindings(&self) -> Vec<(String, String)> {
        let prefix = self.named(CONNECT);
        let pairs = self.pairs.iter();
        pairs
            .filter_map(|(name, value)| Some((name.strip_prefix(&*prefix)?, *value)))
            .filter(|(digits, _)| is_digits(digits))
            .map(|(digits, value)| (digits.to_owned(), value.to_owned()))
            .collect()
    }

    /// Sets a cookie.
    pub(super) fn set(&self, name: Name, value: &str) -> HeaderValue {
        self.line(name.text(), value, name.lasts())
    }

    /// Takes a cookie away.
    pub(super) fn clear(&self, name: Name) -> HeaderValue {
        self.line(name.text(), "", 0)
    }

    /// Binds a flow to the browser, and takes the cookies of older flows away where there would be too many; browsers
    /// send the oldest first.
    pub(super) fn bind(&self, digits: &str, value: &str) -> Vec<HeaderValue> {
        let mut older = self.bindings();
        older.retain(|(found, _)| found != digits);
        let surplus = (older.len() + 1).saturating_sub(BINDINGS);
        let mut lines: Vec<_> = older
            .iter()
            .take(surplus)
            .map(|(digits, _)| self.unbind(digits))
            .collect();
        lines.push(self.line(&format!("{CONNECT}{digits}"), value, BINDING));
        lines
    }

    /// Takes the cookie of a flow away.
    pub(super) fn unbind(&self, digits: &str) -> HeaderValue {
        self.line(&format!("{CONNECT}{digits}"), "", 0)
    }

    fn named(&self, name: &str) -> String {
        let prefix = if self.https { "__Host-" } else { "" };
        format!("{prefix}{name}")
    }

    fn line(&self, name: &str, value: &str, lasts: u32) -> HeaderValue {
        let secure = if self.https { "; Secure" } else { "" };
        let line = format!(
            "{}={value}; Path=/; Max-Age={lasts}; HttpOnly; SameSite=Lax{secure}",
            self.named(name)
        );
        HeaderValue::try_from(line)
            .expect("names and values are ours, or came in a header, which is ASCII")
    }
}

/// Whether these can be the digits of a flow.
fn is_digits(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookies(lines: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::COOKIE, HeaderValue::from_static(line));
        }
        headers
    }

    #[test]
    fn on_https_only_names_with_the_prefix_are_ours() {
        let headers = cookies(&[
            "tollgate-session=plain; __Host-tollgate-session=own",
            "tollgate-connect-00aa11bb=x; tollgate-connect-00aa11b=y",
        ]);
        let secure = Cookies::of(&headers, true);
        assert_eq!(secure.get(Name::Session), Some("own"));
        assert_eq!(secure.bindings(), []);
        let plain = Cookies::of(&headers, false);
        assert_eq!(plain.get(Name::Session), Some("plain"));
        assert_eq!(plain.bindings(), [("00aa11bb".to_owned(), "x".to_owned())]);
        assert_eq!(plain.get(Name::Result), None);
    }

    #[test]
    fn a_cookie_that_stands_twice_is_none() {
        let headers = cookies(&["tollgate-session=a", "tollgate-session=b"]);
        assert_eq!(Cookies::of(&headers, false).get(Name::Session), None);
    }

    #[test]
    fn attributes_depend_on_the_scheme() {
        let none = HeaderMap::new();
        let secure = Cookies::of(&none, true);
        assert_eq!(
            secure.set(Name::Session, "v"),
            "__Host-tollgate-session=v; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure"
        );
        let plain = Cookies::of(&none, false);
        assert_eq!(
            plain.clear(Name::Result),
            "tollgate-result=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
        );
    }

    #[test]
    fn a_browser_binds_ten_flows_at_most() {
        let line: Vec<_> = (0..12)
            .map(|number| format!("tollgate-connect-0000000{number:x}=v"))
            .collect();
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, line.join("; ").parse().unwrap());
        let lines = Cookies::of(&headers, false).bind("ffffffff", "new");
        let names: Vec<_> = lines
            .iter()
            .map(|line| line.to_str().unwrap().split("; Path").next().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "tollgate-connect-00000000=",
                "tollgate-connect-00000001=",
                "tollgate-connect-00000002=",
                "tollgate-connect-ffffffff=new"
            ]
        );
    }
}
