//! Clients that lost a stream of their session and come back for the rest of it, which the server keeps (MCP
//! 2025-11-25, transports, resumability). A call that waits for its client keeps its place and its open record.

mod lost;

use std::sync::Arc;

use http::{HeaderValue, Response};

pub(in crate::gateway) use self::lost::{Call, Claim, Lost, Offered, Resumable, claimed};
use super::{
    courier::{Courier, Line},
    event_id::{self, Stream},
    listening,
};
use crate::{
    deadline::Deadline,
    gateway::{
        Ask, Entry, Gateway, ReplyBody,
        reply::{self, finding, results::Turn},
        request::{asked::Ticket, asker::Asker, entry::Ending},
        session::{Session, lifecycle::session_of},
    },
    mcp::{Era, headers},
    policy::Permit,
    refusal::{Code, Refusal},
};

/// Answers a GET: a listening stream, or what is left of the stream that `Last-Event-ID` names.
pub(in crate::gateway) async fn get(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
    mut entry: Box<Entry>,
) -> Response<ReplyBody> {
    entry.record().method = Some("GET".into());
    let named = ask.head.headers.get(headers::LAST_EVENT_ID);
    let named = named.filter(|id| !id.is_empty());
    let place = named.map(|id| id.to_str().ok().and_then(event_id::read));
    let place = match place {
        None => return listening::listen(gateway, ask, permit, entry, None).await,
        Some(Some((Stream::Listening, last))) => {
            return listening::listen(gateway, ask, permit, entry, Some(last)).await;
        }
        Some(Some((Stream::Call(call), last))) => Some((call, last)),
        Some(None) => None,
    };
    match find(gateway, ask, permit, &mut entry, place).await {
        Ok((Found::Lost(lost), last)) => go_on(gateway, permit, entry, lost, &last),
        Ok((Found::Answered(call), last)) => again(gateway, permit, entry, call, &last),
        Err(refusal) => finding::unread(entry, Era::Legacy, &refusal.into()),
    }
}

/// What a client came back for.
enum Found {
    Lost(Box<Lost>),
    Answered(Answered),
}

/// A call that was answered, and recorded.
struct Answered {
    session: Arc<Session>,
    id: u64,
    asker: Asker,
}

/// Looks in the caller's own session, and nowhere else. To answer an unknown id with a stream would lose what the client
/// waits for without a word.
async fn find(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
    entry: &mut Entry,
    place: Option<(u64, HeaderValue)>,
) -> Result<(Found, HeaderValue), Refusal> {
    let session = session_of(gateway, ask, permit)?;
    listening::check_accept(ask)?;
    let unknown = || {
        Refusal::new(
            Code::ResumeUnknown,
            "`Last-Event-ID` names no stream of this session that can be resumed",
        )
    };
    let (id, last) = place.ok_or_else(unknown)?;
    entry.admit_read()?;
    if let Some(lost) = session.resumable.claim(id).await {
        return Ok((Found::Lost(lost), last));
    }
    let asker = session.resumable.answered(id).ok_or_else(unknown)?;
    let call = Answered { session, id, asker };
    Ok((Found::Answered(call), last))
}

/// Goes on with a call that had lost its client. The GET ends here; what comes of the call is told by its own record.
fn go_on(
    gateway: &Gateway,
    permit: &Permit,
    mut entry: Box<Entry>,
    mut lost: Box<Lost>,
    last: &HeaderValue,
) -> Response<ReplyBody> {
    if let Err(refusal) = entry.close_queued(Ending::answered()) {
        Offered::new(lost.session.clone(), lost.call.ticket.id).keep(lost);
        return finding::unkept(Era::Legacy, None, refusal.into());
    }
    // The client may have come back to another worker.
    let call = &mut lost.call;
    call.courier.move_to(gateway, permit);
    call.gateway = gateway.clone();
    call.permit = permit.clone();
    reply::events(lost.resumed(last).events())
}

/// Fetches an answer again, whose call is recorded already; the GET ends with it.
fn again(
    gateway: &Gateway,
    permit: &Permit,
    entry: Box<Entry>,
    answered: Answered,
    last: &HeaderValue,
) -> Response<ReplyBody> {
    let Answered { session, id, asker } = answered;
    let line = Line::Session {
        session: session.clone(),
        call: Some(id),
        pause: None,
    };
    let turn = Turn::of(&entry, asker.turn_bytes);
    let call = Call {
        gateway: gateway.clone(),
        permit: permit.clone(),
        entry,
        courier: Courier::new(gateway, permit, line, turn),
        ticket: Ticket::of_answered(id, session.clone()),
        asker,
    };
    let until = Deadline::after(permit.server().limits.call);
    let lost = Lost {
        session,
        call,
        until,
    };
    reply::events(lost.resumed(last).events())
}
