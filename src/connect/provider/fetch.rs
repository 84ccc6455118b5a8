//! What is asked of a server's authorization: each URL judged by policy and by address, never a redirect followed.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderValue, Method,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderName, RETRY_AFTER},
};
use jiff::fmt::rfc2822;
use zeroize::Zeroizing;

use crate::{
    deadline::Deadline,
    egress::{self, Egress, Failed, Fetch, Fetched, FieldLines, ResolveError},
    mcp::visible::invisible,
    policy::Permit,
    refusal::Refusal,
};

/// The longest document or answer that is read, in bytes.
pub(super) const MAX_ANSWER: usize = 1024 * 1024;

/// How long one request may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The longest pause that a provider is believed to want.
const MAX_PAUSE: Duration = Duration::from_secs(60 * 60);

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// The way to the authorization of one server.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub(super) egress: &'a Egress,
    pub(super) permit: &'a Permit,
    pub(super) deadline: Deadline,
}

/// A request that has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfetched {
    /// Policy lets nothing be sent to this URL.
    #[error("{}", .0.public)]
    Forbidden(Refusal),
    /// It failed on the way.
    #[error(transparent)]
    Failed(#[from] Failed),
}

impl Way<'_> {
    /// Asks for a document.
    pub(super) async fn get(&self, url: &str) -> Result<Fetched, Unfetched> {
        self.send(Method::GET, url, &[], Bytes::new()).await
    }

    /// Posts a body, which is wiped once it was sent.
    pub(super) async fn post(
        &self,
        url: &str,
        fields: &[(HeaderName, HeaderValue)],
        body: Zeroizing<Vec<u8>>,
    ) -> Result<Fetched, Unfetched> {
        let body = Bytes::from_owner(body);
        self.send(Method::POST, url, fields, body).await
    }

    /// Sends a request with these fields besides `Accept`.
    pub(super) async fn send(
        &self,
        method: Method,
        url: &str,
        fields: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Fetched, Unfetched> {
        let permit = self.permit.fetch(url).map_err(Unfetched::Forbidden)?;
        let mut lines = FieldLines::new();
        lines.add(&ACCEPT, &JSON);
        for (name, value) in fields {
            lines.add(name, value);
        }
        let fetch = Fetch {
            permit: &permit,
            method,
            fields: lines,
            body,
            response_bytes: MAX_ANSWER,
            deadline: self.deadline.min(Deadline::after(LIMIT)),
        };
        Ok(self.egress.fetch(fetch).await?)
    }
}

/// The content type of a body that is posted.
pub(super) fn content(value: HeaderValue) -> (HeaderName, HeaderValue) {
    (CONTENT_TYPE, value)
}

/// `Authorization`, marked as a secret; `None` where it cannot stand in a header.
pub(super) fn authorization(text: &str) -> Option<(HeaderName, HeaderValue)> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some((AUTHORIZATION, value))
}

/// What an answer says that is no answer to the question: the server's fault, or too many requests. It may be different
/// later.
pub(super) fn is_transient(answer: &Fetched) -> bool {
    answer.status.is_server_error() || matches!(answer.status.as_u16(), 408 | 425 | 429)
}

/// How long the answer says to wait (RFC 9110, section 10.2.3): in seconds, or as a date, which is held against the
/// answer's own. An hour at most.
pub(super) fn retry_after(answer: &Fetched) -> Option<Duration> {
    let text = |name| str::from_utf8(answer.headers.get(name)?).ok();
    let said = text(&RETRY_AFTER)?;
    if !said.is_empty() && said.bytes().all(|byte| byte.is_ascii_digit()) {
        let pause = said.parse().map_or(MAX_PAUSE, Duration::from_secs);
        return Some(pause.min(MAX_PAUSE));
    }
    let date = |text: &str| {
        rfc2822::parse(text)
            .ok()
            .map(|date| date.timestamp().as_second())
    };
    let pause = date(said)?.saturating_sub(date(text(&DATE)?)?);
    Some(Duration::from_secs(pause.try_into().ok()?).min(MAX_PAUSE))
}

/// The media type of an answer, in lower case and without parameters.
pub(super) fn media_type(answer: &Fetched) -> String {
    let value = answer.headers.get(&CONTENT_TYPE).unwrap_or_default();
    let value = value.split(|byte| *byte == b';').next().unwrap_or_default();
    String::from_utf8_lossy(value.trim_ascii()).to_ascii_lowercase()
}

/// An answer's body as a JSON text may stand in it: without a byte order mark, and not said to be a page.
pub(super) fn json(answer: &Fetched) -> Option<&[u8]> {
    let is_page = media_type(answer).contains("html");
    let body = answer.body.trim_ascii_start();
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    (!is_page).then_some(body)
}

/// Whether a failure says that there is nothing at the URL, rather than that nobody can tell now.
pub(super) fn is_final(error: &egress::Error) -> bool {
    match error {
        egress::Error::Resolve(error) => {
            matches!(error, ResolveError::NoName(_) | ResolveError::NoAddress(_))
        }
        egress::Error::Blocked(_) | egress::Error::Undecodable { .. } => true,
        other => other.came_from_server(),
    }
}

/// Text of a provider for a person: one line of at most `max` characters, without what changes how others are shown.
pub(super) fn shown(text: &str, max: usize) -> String {
    let spaced = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c });
    let mut shown = String::new();
    for (at, character) in spaced.filter(|c| !invisible(*c)).enumerate() {
        if at == max {
            shown.push('…');
            break;
        }
        shown.push(character);
    }
    shown.trim().to_owned()
}
