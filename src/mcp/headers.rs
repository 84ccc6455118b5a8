//! The protocol's HTTP headers: read once each, and held against the body.

mod media;
mod mirror;

use http::{HeaderMap, HeaderName, HeaderValue};
pub use media::{accepts_answers, accepts_stream, is_json, is_stream};
pub use mirror::{check_legacy, check_modern, era, era_without_body, mirrored_name};

use crate::refusal::{Code, Refusal};

/// The revision of a request; equal to the one in `_meta`.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method of a request.
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The tool, prompt or resource of a request.
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The session of a legacy request.
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Where a legacy stream broke off.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const SENTINEL: (&str, &str) = ("=?base64?", "?=");

/// The headers of one request, without surrounding white space; each stands at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtocolHeaders<'h> {
    /// `MCP-Protocol-Version`.
    pub protocol_version: Option<&'h str>,
    /// `Mcp-Method`.
    pub method: Option<&'h str>,
    /// `Mcp-Name`, still encoded.
    pub name: Option<&'h str>,
    /// `Mcp-Session-Id`.
    pub session_id: Option<&'h str>,
    /// `Last-Event-ID`.
    pub last_event_id: Option<&'h str>,
    /// `Content-Type`.
    pub content_type: Option<&'h str>,
}

impl<'h> ProtocolHeaders<'h> {
    /// Reads them; a header that stands twice, or holds other than visible ASCII, is refused.
    pub fn read(headers: &'h HeaderMap) -> Result<Self, Refusal> {
        let mut read = Self::default();
        // There are few headers: to go through them once costs less than to look each of these up.
        for (name, value) in headers {
            let header = match name.as_str() {
                "mcp-protocol-version" => &mut read.protocol_version,
                "mcp-method" => &mut read.method,
                "mcp-name" => &mut read.name,
                "mcp-session-id" => &mut read.session_id,
                "last-event-id" => &mut read.last_event_id,
                "content-type" => &mut read.content_type,
                _ => continue,
            };
            if header.is_some() {
                return Err(Refusal::new(
                    Code::HeaderDuplicate,
                    format!("header `{name}` stands twice"),
                ));
            }
            *header = Some(text(name, value)?);
        }
        Ok(read)
    }
}

/// The value of a header, without surrounding white space.
fn text<'h>(name: &HeaderName, value: &'h HeaderValue) -> Result<&'h str, Refusal> {
    let text = value.to_str().map_err(|_| {
        Refusal::new(
            Code::HeaderMismatch,
            format!("header `{name}` is not visible ASCII"),
        )
    })?;
    Ok(text.trim_matches([' ', '\t']))
}

/// `value` as it stands in `Mcp-Name` and `Mcp-Param-*` (MCP 2026-07-28, transports): as it is where a header can
/// carry it, else in base64.
pub fn encode(value: &str) -> HeaderValue {
    let plain = value
        .bytes()
        .all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
        && value.trim_matches([' ', '\t']) == value
        && sentinel(value).is_none();
    if plain && let Ok(header) = HeaderValue::from_str(value) {
        return header;
    }
    let coded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, value);
    HeaderValue::try_from(format!("{}{coded}{}", SENTINEL.0, SENTINEL.1))
        .expect("base64 is visible ASCII")
}

/// What [`encode`] made a header of; `None` if the base64 or the UTF-8 in it is broken.
pub fn decode(header: &str) -> Option<std::borrow::Cow<'_, str>> {
    let Some(coded) = sentinel(header) else {
        return Some(header.into());
    };
    let bytes = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, coded).ok()?;
    Some(String::from_utf8(bytes).ok()?.into())
}

fn sentinel(value: &str) -> Option<&str> {
    value.strip_prefix(SENTINEL.0)?.strip_suffix(SENTINEL.1)
}

#[cfg(test)]
mod tests;
