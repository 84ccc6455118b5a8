//! What only the session protocol has: `initialize`, its notifications, the end of a session.

use std::sync::Arc;

use http::{HeaderValue, Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Ask, Asked, Entry, Finding, Gateway, ReplyBody, asked::find_session, entry::Ending, finding,
    own, reply, session::Session, tell,
};
use crate::{
    deadline::Deadline,
    mcp::{Era, Id, Rejection, Revision, envelope::splice, headers::ProtocolHeaders},
    policy::Permit,
    refusal::{Code, Refusal},
    upstream::{Edit, Error, Hello, Message},
};

/// Opens a session with the server, and one for the client that uses it alone.
pub(super) async fn initialize(
    gateway: &Gateway,
    ask: &Ask,
    asked: &Asked<'_>,
    permit: &Permit,
    entry: &mut Entry,
) -> Result<Finding, Refusal> {
    entry.admit_read()?;
    let params = asked.message.params.as_ref();
    let version = params.and_then(|params| params.protocol_version?.string());
    let client_info = params
        .and_then(|params| params.client_info)
        .filter(|info| info.is_object());
    let (Some(_), Some(client_info)) = (version, client_info) else {
        return Err(Refusal::new(
            Code::InvalidParams,
            "`params` must have `protocolVersion`, a string, and `clientInfo`, an object",
        ));
    };
    gateway.shared.sessions.admit(&ask.caller)?;
    let deadline = Deadline::after(permit.server().limits.call);
    let hello = Hello::new(client_info.as_str());
    let (session, message) = gateway.upstream.open(permit, hello, deadline).await?;
    let Some(result) = message.result() else {
        return refused_by_server(permit, message);
    };
    let edits = cut(permit, &message, result)?;
    let session = gateway
        .shared
        .sessions
        .open(&ask.caller, permit.server().clone(), session);
    gateway
        .shared
        .metrics
        .mcp_sessions
        .set(gateway.shared.sessions.count() as i64);
    let mut id = HeaderValue::from_str(&session.id).expect("a token is hexadecimal");
    id.set_sensitive(true);
    Ok(Finding::Changed {
        message,
        edits,
        session: Some(id),
    })
}

/// A server that knows no `initialize` speaks the modern era only; any other error is the client's to see.
fn refused_by_server(permit: &Permit, message: Message) -> Result<Finding, Refusal> {
    let modern = match message.error_code() {
        Some(-32022..=-32020) => true,
        Some(-32601 | -32602) => message.status.is_client_error(),
        _ => false,
    };
    if !modern {
        return Ok(Finding::Message(message));
    }
    Err(Error::Era {
        server: permit.server().name.clone(),
        wanted: Revision::LEGACY,
        spoken: Revision::MODERN.as_str().to_owned(),
    }
    .into())
}

#[derive(Deserialize)]
struct Welcome<'a> {
    #[serde(rename = "protocolVersion")]
    protocol_version: String,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
}

/// The server's answer to `initialize`, cut to what is relayed. A server that holds out for an older revision is refused.
fn cut(permit: &Permit, message: &Message, result: &str) -> Result<Vec<Edit>, Refusal> {
    let server = || permit.server().name.clone();
    let welcome: Welcome<'_> = serde_json::from_str(result).map_err(|error| {
        Error::Malformed {
            server: server(),
            reason: format!("its answer to initialize: {error}"),
        }
        .refusal()
    })?;
    if welcome.protocol_version != Revision::LEGACY.as_str() {
        let spoken = welcome.protocol_version.chars().take(32).collect();
        return Err(Error::Era {
            server: server(),
            wanted: Revision::LEGACY,
            spoken,
        }
        .into());
    }
    let capabilities = own::capabilities(welcome.capabilities, own::Listening::Yes);
    Ok(own::edits(message, [(welcome.capabilities, capabilities)]))
}

/// Passes `notifications/initialized` on.
pub(super) async fn initialized(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
) -> Result<Finding, Refusal> {
    if let Some(session) = &asked.session {
        let deadline = Deadline::after(tell::TELLING);
        gateway
            .upstream
            .tell(permit, &session.upstream, asked.body.clone(), deadline)
            .await?;
    }
    Ok(Finding::Accepted)
}

/// Stops the request that `notifications/cancelled` names, and tells the server, under the id that it knows. A request
/// that is not in flight is none of anyone's business (MCP 2025-11-25, cancellation).
pub(super) fn cancelled(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
) -> Result<Finding, Refusal> {
    let part = asked
        .message
        .params
        .as_ref()
        .and_then(|params| params.request_id);
    let id = part.and_then(|part| Id::read(part).ok());
    if let (Some(session), Some(part), Some(id)) = (&asked.session, part, id)
        && let Some(upstream_id) = session.cancel(id.key().as_bytes())
    {
        let mut buffer = itoa::Buffer::new();
        let edit = (part.range(), buffer.format(upstream_id).as_bytes());
        let body = splice(asked.body, &[edit]);
        tell::later(gateway, permit, session.clone(), body.into(), ());
    }
    Ok(Finding::Accepted)
}

/// Ends a session on both sides. The client's end is what counts; the server is told.
pub(super) async fn end(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
    mut entry: Entry,
) -> Response<ReplyBody> {
    entry.record().method = Some("DELETE".into());
    let session = match session_of(gateway, ask, permit) {
        Ok(session) => session,
        Err(refusal) => return finding::unread(entry, Era::Legacy, &refusal.into()),
    };
    gateway.shared.sessions.end(&session);
    gateway
        .shared
        .metrics
        .mcp_sessions
        .set(gateway.shared.sessions.count() as i64);
    let told = gateway
        .upstream
        .close(permit, &session.upstream, Deadline::after(tell::TELLING))
        .await;
    if let Err(error) = told {
        tracing::debug!(server = %permit.server().name, code = error.code().as_str(), "a session's end was not taken");
    }
    match entry.close_queued(Ending::answered()) {
        Ok(proof) => reply::bare(StatusCode::OK, proof),
        Err(refusal) => finding::unkept(Era::Legacy, None, Rejection::from(refusal)),
    }
}

/// The session that a request without a body names.
pub(super) fn session_of(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
) -> Result<Arc<Session>, Refusal> {
    let headers = ProtocolHeaders::read(&ask.head.headers)?;
    match headers.protocol_version.map(Revision::parse) {
        None | Some(Some(Revision::LEGACY)) => {}
        Some(Some(Revision::MODERN)) => {
            return Err(Refusal::new(
                Code::MethodNotAllowed,
                "this protocol version has no sessions",
            ));
        }
        Some(_) => {
            return Err(Refusal::new(
                Code::VersionUnsupported,
                "this protocol version is not served",
            ));
        }
    }
    find_session(gateway, ask, permit, headers.session_id)
}
