//! What is served where.

use http::Method;

use crate::refusal::{Code, Refusal};

/// Where a link signs in.
pub(super) const LOGIN: &str = "/login";
/// Where a browser signs out.
pub(super) const SIGN_OUT: &str = "/sign-out";
/// The sign-ins of the user.
pub(super) const SIGN_INS: &str = "/sign-ins";
/// What came of what was done.
pub(super) const RESULT: &str = "/result";
/// Where providers send browsers back to.
const CALLBACK: &str = "/oauth/callback";
const METADATA: &str = "/oauth/client-metadata.json";
const CONNECT: &str = "/connect/";
const DISCONNECT: &str = "/disconnect/";

/// A page, or what a page's button does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route<'p> {
    /// What the user is connected to.
    Home,
    /// The button that uses a link up.
    Login,
    SignOut,
    SignIns,
    /// A server's page: what connecting means, and the button.
    Connect(&'p str),
    Disconnect(&'p str),
    Callback,
    Result,
    Metadata,
    Style(&'p str),
}

impl<'p> Route<'p> {
    /// The route of a path; what stands after the prefix is the name of a server.
    pub(super) fn of(path: &'p str) -> Option<Self> {
        Some(match path {
            "/" => Self::Home,
            LOGIN => Self::Login,
            SIGN_OUT => Self::SignOut,
            SIGN_INS => Self::SignIns,
            RESULT => Self::Result,
            CALLBACK => Self::Callback,
            METADATA => Self::Metadata,
            _ => {
                if let Some(server) = path.strip_prefix(CONNECT) {
                    Self::Connect(name(server)?)
                } else if let Some(server) = path.strip_prefix(DISCONNECT) {
                    Self::Disconnect(name(server)?)
                } else {
                    Self::Style(path.strip_prefix("/style-")?.strip_suffix(".css")?)
                }
            }
        })
    }

    /// The methods that it serves, as `Allow` lists them.
    pub(super) fn allows(self) -> &'static str {
        match self {
            Self::Home | Self::Result | Self::Metadata | Self::Style(_) => "GET, HEAD",
            // Whoever only looks must not use an answer of a provider up.
            Self::Callback => "GET",
            Self::SignOut => "POST",
            Self::Login | Self::SignIns | Self::Connect(_) | Self::Disconnect(_) => {
                "GET, HEAD, POST"
            }
        }
    }

    pub(super) fn serves(self, method: &Method) -> bool {
        let mut allowed = self.allows().split(", ");
        allowed.any(|allowed| allowed == method.as_str())
    }
}

/// A server's page.
pub(super) fn connect(server: &str) -> String {
    format!("{CONNECT}{server}")
}

/// The page that ends a connection.
pub(super) fn disconnect(server: &str) -> String {
    format!("{DISCONNECT}{server}")
}

/// A name that a server can have; no policy is asked about another.
fn name(text: &str) -> Option<&str> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_name = !text.is_empty() && text.len() <= 32 && text.bytes().all(fits);
    is_name.then_some(text)
}

pub(super) fn unknown() -> Refusal {
    Refusal::new(Code::WebNotFound, "nothing is served here")
}

pub(super) fn wrong_method(method: &Method) -> Refusal {
    let public = format!("`{}` is not served here", method.as_str().escape_debug());
    Refusal::new(Code::WebMethod, public)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_routes() {
        for (path, route) in [
            ("/", Some(Route::Home)),
            ("/login", Some(Route::Login)),
            ("/oauth/callback", Some(Route::Callback)),
            ("/oauth/client-metadata.json", Some(Route::Metadata)),
            ("/connect/notes-2", Some(Route::Connect("notes-2"))),
            ("/disconnect/notes", Some(Route::Disconnect("notes"))),
            ("/style-abc.css", Some(Route::Style("abc"))),
            ("/connect/", None),
            ("/connect/Notes", None),
            ("/connect/a/b", None),
            ("/connect/%6eotes", None),
            ("/connect/..", None),
            ("//", None),
            ("/login/", None),
            ("", None),
            ("*", None),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
        }
    }

    #[test]
    fn only_what_is_allowed_is_served() {
        assert!(Route::Home.serves(&Method::HEAD));
        assert!(!Route::Home.serves(&Method::POST));
        assert!(!Route::Callback.serves(&Method::HEAD));
        assert!(!Route::Callback.serves(&Method::POST));
        assert!(!Route::SignOut.serves(&Method::GET));
        assert!(Route::Connect("a").serves(&Method::POST));
        assert!(!Route::Connect("a").serves(&Method::PUT));
    }
}
