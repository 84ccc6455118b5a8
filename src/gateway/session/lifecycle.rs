//! What only the session protocol has: `initialize`, its notifications, the end of a session.

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout_at;

use super::{Client, Session, farewell, questions, tell};
use crate::{
    catalog::View,
    deadline::Deadline,
    gateway::{
        Ask, Asked, Entry, Finding, Gateway, ReplyBody,
        connection::{self, offered, standing},
        discovery::{discover, pinning},
        reply::{self, finding},
        request::{asked::find_session, asker::malformed, entry::Ending},
    },
    mcp::{
        Era, Id, Method, Question, Rejection, Revision,
        capabilities::{Offer, of_server},
        envelope::splice,
        headers::ProtocolHeaders,
    },
    policy::{Auth, Permit},
    refusal::{Code, Refusal},
    upstream::{self, Edit, Error, Hello, Message},
};

/// What a client says of itself is kept as long as its session, to open the server's anew: so many bytes at most.
const HELLO_BYTES: usize = 32 << 10;
/// How long an `initialize` waits for what shows the server whose it is.
const CONNECTING: Duration = Duration::from_secs(2);

/// Opens a session with the server, and one for the client that uses it alone.
pub(in crate::gateway) async fn initialize(
    gateway: &Gateway,
    ask: &Ask,
    asked: &Asked<'_>,
    permit: &Permit,
    entry: &mut Entry,
) -> Result<Finding, Refusal> {
    entry.admit_read()?;
    let (client, hello) = read(asked, permit)?;
    gateway.shared.sessions.admit(&ask.caller)?;
    let deadline = Deadline::after(permit.server().limits.call);
    let opening = async {
        connected(gateway, permit).await?;
        let _leave = gateway.upstream.admit(permit)?;
        let opened = farewell::open(gateway, permit, hello.clone(), deadline).await;
        Ok::<_, Refusal>(opened?)
    };
    let (session, message) = match opening.await {
        Err(refusal) if connection::is_missing(refusal.code) => {
            let withheld = offered::is_withheld(&ask.policy, refusal.code);
            return standing::welcome(gateway, ask, permit, (client, hello), withheld).await;
        }
        opened => opened?,
    };
    let (Some(session), Some(result)) = (session, message.result()) else {
        return refused_by_server(permit, message);
    };
    let mut edits = cut(permit, &message, result)?;
    let view = View::of(session.revision(), &client.offer);
    let instructions = discover::instructions(permit, &message)?;
    edits.extend(pinning::instructions(gateway, permit, view, &message, instructions).await?);
    let session = open(gateway, ask, permit, session, client);
    Ok(Finding::Message {
        message,
        edits,
        scope: None,
        session: Some(session),
    })
}

/// What the client says of itself, and what of that the server is told.
fn read(asked: &Asked<'_>, permit: &Permit) -> Result<(Client, Hello), Refusal> {
    let params = asked.message.params.as_ref();
    let version = params.and_then(|params| params.protocol_version?.string());
    let client_info = params
        .and_then(|params| params.client_info)
        .filter(|info| info.is_object());
    let (Some(version), Some(client_info)) = (version, client_info) else {
        return Err(Refusal::new(
            Code::InvalidParams,
            "`params` must have `protocolVersion`, a string, and `clientInfo`, an object",
        ));
    };
    let relay = permit.server().relay;
    let capabilities = params.and_then(|params| params.capabilities);
    let offer = Offer::new(capabilities, |question| questions::relayed(relay, question));
    if offer.as_json().len() + client_info.as_str().len() > HELLO_BYTES {
        return Err(Refusal::new(
            Code::InvalidParams,
            format!("`capabilities` and `clientInfo` are longer than {HELLO_BYTES} bytes"),
        ));
    }
    let hello = Hello::new(revision(&version), offer.as_json(), client_info.as_str());
    let opens_pages = connection::opens_pages(capabilities);
    Ok((Client { offer, opens_pages }, hello))
}

/// Makes sure that the server can be shown whose session it is. Nobody who connects waits long for that: until it can,
/// the session is one that the server does not know of yet.
async fn connected(gateway: &Gateway, permit: &Permit) -> Result<(), Refusal> {
    if permit.server().auth == Auth::None {
        return Ok(());
    }
    let deadline = Deadline::after(CONNECTING);
    let asked = timeout_at(
        deadline.instant(),
        gateway.upstream.credential(permit, deadline),
    );
    match asked.await {
        Ok(found) => Ok(found.map(drop)?),
        Err(_) => Err(Refusal::new(
            Code::ConnectTransient,
            "the authorization server takes its time",
        )),
    }
}

/// Opens the client's session; returns its id.
pub(in crate::gateway) fn open(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
    upstream: upstream::Session,
    client: Client,
) -> HeaderValue {
    let server = permit.server().clone();
    let sessions = &gateway.shared.sessions;
    let session = sessions.open(&ask.caller, server, upstream, client);
    gateway.count_sessions();
    let mut id = HeaderValue::from_str(&session.id).expect("a token is hexadecimal");
    id.set_sensitive(true);
    id
}

/// The revision that the server is asked for: the client's, else the newest that has sessions.
pub(in crate::gateway) fn revision(wanted: &str) -> Revision {
    Revision::parse(wanted)
        .filter(|revision| revision.era() == Era::Legacy)
        .unwrap_or(Revision::LEGACY)
}

/// A server that knows no `initialize` speaks the modern era only; any other error is the client's to see.
fn refused_by_server(permit: &Permit, message: Message) -> Result<Finding, Refusal> {
    let modern = match message.error_code() {
        Some(-32022..=-32020) => true,
        Some(-32601 | -32602) => message.status.is_client_error(),
        _ => false,
    };
    if !modern {
        return Ok(message.into());
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
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
}

/// The server's answer to `initialize`, cut to what is relayed.
fn cut(permit: &Permit, message: &Message, result: &str) -> Result<Vec<Edit>, Refusal> {
    let welcome: Welcome<'_> = serde_json::from_str(result)
        .map_err(|error| malformed(permit, format!("its answer to initialize: {error}")))?;
    let told = welcome.capabilities.map(|raw| (raw, of_server(raw.get())));
    let edit = told.and_then(|(raw, text)| {
        let place = message.part_of_result(raw.get())?;
        Some(Edit { place, text })
    });
    Ok(edit.into_iter().collect())
}

/// Passes a notification on: that the client is ready, how far it has come with what it was asked, that its folders
/// changed.
pub(in crate::gateway) async fn notified(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
) -> Result<Finding, Refusal> {
    // A server that does not know of the session yet is told of it once it is opened.
    let session = asked.session.as_ref();
    let Some(session) = session.filter(|session| session.upstream.is_open()) else {
        return Ok(Finding::Accepted);
    };
    if asked.asker.method == Some(Method::RootsChanged)
        && !session.offer.admits(Question::Roots, false)
    {
        return Ok(Finding::Accepted);
    }
    let deadline = Deadline::after(tell::TELLING);
    gateway
        .upstream
        .tell(permit, &session.upstream, asked.body.clone(), deadline)
        .await?;
    Ok(Finding::Accepted)
}

/// Stops the request that `notifications/cancelled` names, and tells the server, under the id that it knows. A request
/// that is not in flight is none of anyone's business (MCP 2025-11-25, cancellation).
pub(in crate::gateway) fn cancelled(
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
pub(in crate::gateway) async fn end(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
    mut entry: Box<Entry>,
) -> Response<ReplyBody> {
    entry.record().method = Some("DELETE".into());
    let session = match session_of(gateway, ask, permit) {
        Ok(session) => session,
        Err(refusal) => return finding::unread(entry, Era::Legacy, &refusal.into()),
    };
    gateway.shared.sessions.end(&session);
    gateway.count_sessions();
    farewell::say(&gateway.upstream, permit, &session.upstream).await;
    match entry.close_queued(Ending::answered()) {
        Ok(proof) => reply::bare(StatusCode::OK, proof),
        Err(refusal) => finding::unkept(Era::Legacy, None, Rejection::from(refusal)),
    }
}

/// Ends the client's session after a failure with this code, if that is what it says: its server has ended its own and
/// opens no other. The 404 has the client start anew, and every later one says the same (MCP 2025-11-25, session
/// management).
pub(in crate::gateway) fn lose(gateway: &Gateway, session: &Session, code: Code) {
    if code == Code::UpstreamSessionLost {
        gateway.shared.sessions.end(session);
        gateway.count_sessions();
    }
}

/// The session that a request without a body names.
pub(in crate::gateway) fn session_of(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
) -> Result<Arc<Session>, Refusal> {
    let headers = ProtocolHeaders::read(&ask.head.headers)?;
    match headers.protocol_version.map(Revision::parse) {
        None => {}
        Some(Some(revision)) if revision.era() == Era::Legacy => {}
        Some(Some(_)) => {
            return Err(Refusal::new(
                Code::MethodNotAllowed,
                "this protocol version has no sessions",
            ));
        }
        Some(None) => {
            return Err(Refusal::new(
                Code::VersionUnsupported,
                "this protocol version is not served",
            ));
        }
    }
    find_session(gateway, ask, permit, headers.session_id)
}
