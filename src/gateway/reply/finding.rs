//! What the pipeline found, and how it becomes a reply whose record is kept.

use http::{HeaderValue, Response, StatusCode};

use super::{Proof, ReplyBody, results};
use crate::{
    gateway::{
        Asked, Entry, Gateway,
        connection::waiting::subscription::Awaited,
        reply,
        request::{asked::Ticket, asker::Scope, entry::Ending},
        streams::{relay::Relay, subscription::Opened},
    },
    mcp::{self, Era, Rejection, headers},
    policy::Permit,
    refusal::{Code, Refusal},
    upstream::{Edit, Message, Messages},
};

/// An answer to a message, before it is recorded and written.
pub(in crate::gateway) enum Finding {
    /// The server's, under the caller's id; perhaps cut to what is offered, for a narrower scope, or with the session
    /// that it opens.
    Message {
        message: Message,
        edits: Vec<Edit>,
        scope: Option<Scope>,
        session: Option<HeaderValue>,
    },
    /// A stream that ends with the server's answer.
    Stream(Box<Messages>, Ticket),
    /// A subscription, whose stream either side may end.
    Subscription(Opened),
    /// A stream of a client whose server is not offered until its person has connected.
    Awaited(Awaited),
    /// An empty result of our own.
    Empty,
    /// A result of our own, JSON text.
    Own(String),
    /// The same, with the session that it opens.
    Welcome(String, HeaderValue),
    /// A notification was taken.
    Accepted,
}

impl From<Message> for Finding {
    fn from(message: Message) -> Self {
        Self::Message {
            message,
            edits: Vec::new(),
            scope: None,
            session: None,
        }
    }
}

impl Finding {
    /// Records the end of the request and writes the reply; a stream does both when it ends.
    pub(in crate::gateway) async fn reply(
        self,
        gateway: &Gateway,
        asked: &Asked<'_>,
        permit: &Permit,
        mut entry: Box<Entry>,
    ) -> Response<ReplyBody> {
        let asker = &asked.asker;
        let (status, ending, pieces, session) = match self {
            Self::Stream(messages, ticket) => {
                let relay = Relay::new(gateway, asked, permit, entry, messages, ticket);
                return reply::events(relay.events());
            }
            Self::Subscription(opened) => {
                return reply::events(opened.events(gateway, asked, permit, entry));
            }
            Self::Awaited(awaited) => {
                return reply::events(awaited.events(gateway, asked, permit, entry));
            }
            Self::Message {
                message,
                mut edits,
                scope,
                session,
            } => {
                let scope = scope.unwrap_or(asker.scope);
                let ending = Ending::with(&message);
                let fitted = results::fit(gateway, permit, asker, &mut entry, &message);
                let more = fitted.and_then(|(message, more)| {
                    if edits.is_empty() {
                        edits = more;
                    } else {
                        edits.extend(more);
                    }
                    let session = asked.session.as_deref();
                    edits.extend(asker.edits(gateway, permit, &message, scope, session)?);
                    Ok(message)
                });
                let message = match more {
                    Ok(message) => message,
                    Err(refusal) => return refused(entry, asked, refusal).await,
                };
                let status = message_status(asker.era, &message);
                let pieces = message.pieces(&asker.id, edits);
                (status, ending, pieces, session)
            }
            Self::Empty => {
                let text = mcp::reply::empty(asker.era, asker.id_text().unwrap_or("null"));
                (StatusCode::OK, Ending::answered(), vec![text], None)
            }
            Self::Own(result) => return own(entry, asked, &result, None).await,
            Self::Welcome(result, session) => {
                return own(entry, asked, &result, Some(session)).await;
            }
            Self::Accepted => return accepted(asked, entry).await,
        };
        match entry.close(ending).await {
            Ok(proof) => in_session(reply::json(status, pieces, proof), session),
            Err(refusal) => unkept(
                asked.asker.era,
                asked.asker.method,
                asked.rejection(refusal),
            ),
        }
    }
}

/// The reply to a message that is refused.
pub(in crate::gateway) async fn refused(
    mut entry: Box<Entry>,
    asked: &Asked<'_>,
    refusal: Refusal,
) -> Response<ReplyBody> {
    if refusal.code == Code::Cancelled {
        return stopped(entry).await;
    }
    let rejection = &asked.rejection(refusal);
    match entry.close(Ending::without(&rejection.refusal)).await {
        Ok(proof) => rejected(asked.asker.era, asked.asker.method, rejection, proof),
        Err(refusal) => unkept(
            asked.asker.era,
            asked.asker.method,
            asked.rejection(refusal),
        ),
    }
}

/// The reply to a request that was not understood, or whose caller may not use the server.
pub(in crate::gateway) fn unread(
    mut entry: Box<Entry>,
    era: Era,
    rejection: &Rejection,
) -> Response<ReplyBody> {
    match entry.close_queued(Ending::without(&rejection.refusal)) {
        Ok(proof) => rejected(era, None, rejection, proof),
        Err(refusal) => unkept(
            era,
            None,
            Rejection::from(refusal).with_id(rejection.id.as_deref()),
        ),
    }
}

fn rejected(
    era: Era,
    method: Option<mcp::Method>,
    rejection: &Rejection,
    proof: Proof,
) -> Response<ReplyBody> {
    let (status, body) = mcp::reply::refused(era, method, rejection);
    reply::json(status, vec![body], proof)
}

/// The one reply without a record: it says that records cannot be kept.
pub(in crate::gateway) fn unkept(
    era: Era,
    method: Option<mcp::Method>,
    rejection: Rejection,
) -> Response<ReplyBody> {
    rejected(era, method, &rejection, Proof::Impossible)
}

/// The reply that is a result of our own, perhaps with the session that it opens.
pub(in crate::gateway) async fn own(
    mut entry: Box<Entry>,
    asked: &Asked<'_>,
    result: &str,
    session: Option<HeaderValue>,
) -> Response<ReplyBody> {
    let id = asked.asker.id_text().unwrap_or("null");
    let text = mcp::reply::result(id, result.as_bytes());
    let ending = Ending::ours(text.len());
    match entry.close(ending).await {
        Ok(proof) => in_session(reply::json(StatusCode::OK, vec![text], proof), session),
        Err(refusal) => unkept(
            asked.asker.era,
            asked.asker.method,
            asked.rejection(refusal),
        ),
    }
}

/// The reply with the id of the session that it opens.
fn in_session(mut reply: Response<ReplyBody>, session: Option<HeaderValue>) -> Response<ReplyBody> {
    if let Some(session) = session {
        reply.headers_mut().insert(headers::SESSION_ID, session);
    }
    reply
}

pub(in crate::gateway) async fn accepted(
    asked: &Asked<'_>,
    mut entry: Box<Entry>,
) -> Response<ReplyBody> {
    match entry.close(Ending::answered()).await {
        Ok(proof) => reply::bare(StatusCode::ACCEPTED, proof),
        Err(refusal) => unkept(asked.asker.era, asked.asker.method, refusal.into()),
    }
}

/// The client cancelled the request: its stream ends without an answer (MCP 2025-11-25, cancellation).
async fn stopped(mut entry: Box<Entry>) -> Response<ReplyBody> {
    drop(entry.close(Ending::stopped()).await);
    reply::events(futures_util::stream::empty())
}

/// The statuses that have a meaning of their own beside a JSON-RPC error (MCP 2026-07-28, errors). Any other would be
/// taken for Tollgate's own.
const RELAYED: [StatusCode; 2] = [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND];

/// Servers say by the status what kind of error it is, which only modern clients read.
fn message_status(era: Era, message: &Message) -> StatusCode {
    match era {
        Era::Modern if RELAYED.contains(&message.status) => message.status,
        Era::Modern | Era::Legacy => StatusCode::OK,
    }
}
