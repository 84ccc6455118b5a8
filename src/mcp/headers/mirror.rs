//! Which era a request belongs to, and whether its headers say what its body says.

use std::borrow::Cow;

use super::{ProtocolHeaders, decode};
use crate::{
    mcp::{Envelope, Era, Kind, Rejection, Revision, methods::Method},
    refusal::Code,
};

/// Where the protocol version stands in a modern request.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The era of a request, from its version metadata and never from its method.
///
/// A modern `_meta` key decides, then the header: a known legacy revision, or anything at all beside a session id,
/// is legacy. An unknown version is answered in the modern way, which tells the client the supported ones.
pub fn era(headers: &ProtocolHeaders<'_>, message: &Envelope<'_>) -> Era {
    if message
        .meta()
        .is_some_and(|meta| meta.protocol_version.is_some())
    {
        return Era::Modern;
    }
    era_without_body(headers)
}

/// The era of a request whose body cannot be read, or says nothing of it.
pub fn era_without_body(headers: &ProtocolHeaders<'_>) -> Era {
    let known = headers.protocol_version.map(Revision::parse);
    match known {
        Some(Some(revision)) => revision.era(),
        Some(None) if headers.session_id.is_none() => Era::Modern,
        Some(None) | None => Era::Legacy,
    }
}

/// The checks of a modern request, in the order that clients may rely on: `_meta`, headers against body, version,
/// method. `Ok(None)` is a notification, of which the modern protocol defines none over HTTP.
pub fn check_modern(
    headers: &ProtocolHeaders<'_>,
    message: &Envelope<'_>,
) -> Result<Option<Method>, Rejection> {
    modern(headers, message).map_err(|rejection| rejection.with_id(message.asked_id()))
}

/// The checks of a legacy message: its version header, and mirrored headers where it has any. `Ok(None)` is an
/// unknown notification or a response.
pub fn check_legacy(
    headers: &ProtocolHeaders<'_>,
    message: &Envelope<'_>,
) -> Result<Option<Method>, Rejection> {
    legacy(headers, message).map_err(|rejection| rejection.with_id(message.asked_id()))
}

/// What `Mcp-Name` mirrors: the tool or prompt name, or the resource's URI.
pub fn mirrored_name<'a>(message: &Envelope<'a>) -> Option<Cow<'a, str>> {
    let params = message.params.as_ref()?;
    let part = match &*message.method {
        "tools/call" | "prompts/get" => params.name,
        "resources/read" => params.uri,
        _ => None,
    };
    part?.string()
}

fn modern(
    headers: &ProtocolHeaders<'_>,
    message: &Envelope<'_>,
) -> Result<Option<Method>, Rejection> {
    if message.kind == Kind::Response {
        return Err(Rejection::new(
            Code::InvalidRequest,
            "a response; this protocol version has none from clients",
        ));
    }
    let version = meta_version(message)?;
    if let Some(version) = &version {
        must_equal("MCP-Protocol-Version", headers.protocol_version, version)?;
    }
    let request = message.kind == Kind::Request;
    mirror(headers, message, request)?;
    match version.as_deref().or(headers.protocol_version) {
        Some(version) if Revision::parse(version) == Some(Revision::MODERN) => {}
        Some(version) => return Err(unsupported(version)),
        None => return Err(missing(META_VERSION)),
    }
    known(Era::Modern, message)
}

fn legacy(
    headers: &ProtocolHeaders<'_>,
    message: &Envelope<'_>,
) -> Result<Option<Method>, Rejection> {
    mirror(headers, message, false)?;
    // `initialize` names its version in the body and is answered with one that is served.
    if message.method != Method::Initialize.as_str()
        && let Some(version) = headers.protocol_version
        && Revision::parse(version).map(Revision::era) != Some(Era::Legacy)
    {
        return Err(unsupported(version));
    }
    known(Era::Legacy, message)
}

/// The version in `_meta`; a request must have it, and the client's capabilities beside it.
fn meta_version<'a>(message: &Envelope<'a>) -> Result<Option<Cow<'a, str>>, Rejection> {
    let meta = message.meta();
    let version = match meta.and_then(|meta| meta.protocol_version) {
        Some(part) => Some(part.string().ok_or_else(|| missing(META_VERSION))?),
        None => None,
    };
    if message.kind == Kind::Request {
        if version.is_none() {
            return Err(missing(META_VERSION));
        }
        let capabilities = meta.and_then(|meta| meta.client_capabilities);
        if !capabilities.is_some_and(|part| part.is_object()) {
            return Err(missing(META_CAPABILITIES));
        }
    }
    Ok(version)
}

/// `Mcp-Method` and `Mcp-Name` against the body; `required` headers must be there.
fn mirror(
    headers: &ProtocolHeaders<'_>,
    message: &Envelope<'_>,
    required: bool,
) -> Result<(), Rejection> {
    if required || headers.method.is_some() {
        must_equal("Mcp-Method", headers.method, &message.method)?;
    }
    let decoded = match headers.name {
        Some(name) => {
            Some(decode(name).ok_or_else(|| mismatch("`Mcp-Name` is not valid base64 of UTF-8"))?)
        }
        None => None,
    };
    match mirrored_name(message) {
        Some(name) if required || decoded.is_some() => {
            must_equal("Mcp-Name", decoded.as_deref(), &name)
        }
        _ => Ok(()),
    }
}

fn must_equal(name: &str, header: Option<&str>, body: &str) -> Result<(), Rejection> {
    match header {
        None => Err(mismatch(format!("header `{name}` is missing"))),
        Some(header) if header != body => Err(mismatch(format!(
            "header `{name}` says `{}` and the body says `{}`",
            shown(header),
            shown(body)
        ))),
        Some(_) => Ok(()),
    }
}

fn known(era: Era, message: &Envelope<'_>) -> Result<Option<Method>, Rejection> {
    match Method::find(era, message.kind, &message.method) {
        None if message.kind == Kind::Request => Err(Rejection::new(
            Code::MethodUnknown,
            format!("no method `{}`", shown(&message.method)),
        )),
        method => Ok(method),
    }
}

fn missing(key: &str) -> Rejection {
    Rejection::new(Code::MetaMissing, format!("`_meta` lacks a valid `{key}`"))
}

fn mismatch(what: impl Into<String>) -> Rejection {
    Rejection::new(Code::HeaderMismatch, what)
}

fn unsupported(version: &str) -> Rejection {
    let version = shown(version);
    let served = Revision::SERVED.map(Revision::as_str).join(" and ");
    Rejection {
        requested: Some(version.as_ref().into()),
        ..Rejection::new(
            Code::VersionUnsupported,
            format!("protocol version `{version}` is not supported; this version speaks {served}"),
        )
    }
}

/// At most 128 characters, since the text goes back to the caller and into the record.
fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(128) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
