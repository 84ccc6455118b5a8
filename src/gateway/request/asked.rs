//! A request as it was understood: its message, its era, its session.

use std::{borrow::Cow, future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::HeaderMap;

use super::{
    asker::{Asker, Scope},
    context,
    entry::Entry,
    forward,
};
use crate::{
    catalog::View,
    deadline::Deadline,
    egress::{Effect, FieldLines},
    gateway::{
        Ask, Gateway,
        call::rounds::Round,
        session::{Session, in_flight::InFlight, tell},
        streams::courier::Line,
    },
    mcp::{
        Envelope, Era, Kind, Method, Rejection, Revision,
        capabilities::Offer,
        headers::{self, ProtocolHeaders},
    },
    policy::{self, Permit},
    refusal::{Code, Refusal},
    upstream::{self, Request, Wire},
};

/// A POST whose headers and body agree.
pub(in crate::gateway) struct Asked<'a> {
    /// The message.
    pub(in crate::gateway) message: Envelope<'a>,
    /// The bytes that it was read from.
    pub(in crate::gateway) body: &'a Bytes,
    /// What its answer needs of it.
    pub(in crate::gateway) asker: Asker,
    /// The session that it belongs to; always `None` in the modern era.
    pub(in crate::gateway) session: Option<Arc<Session>>,
    /// All its headers.
    pub(in crate::gateway) head: &'a HeaderMap,
}

impl<'a> Asked<'a> {
    /// Reads a POST: media types, one strict scan of the body, era, headers against body, session. Without a permit it is
    /// for Tollgate's own server, which has no sessions.
    pub(in crate::gateway) fn read(
        gateway: &Gateway,
        ask: &'a Ask,
        permit: Option<&Permit>,
        entry: &mut Entry,
    ) -> Result<Self, (Era, Rejection)> {
        let early = |refusal: Refusal| (Era::Legacy, Rejection::from(refusal));
        let headers = ProtocolHeaders::read(&ask.head.headers).map_err(early)?;
        check_media(&headers, &ask.head.headers).map_err(early)?;
        let message = Envelope::inbound(&ask.body)
            .map_err(|rejection| (headers::era_without_body(&headers), rejection))?;
        let era = headers::era(&headers, &message);
        let checked = match era {
            Era::Modern => headers::check_modern(&headers, &message),
            Era::Legacy => headers::check_legacy(&headers, &message),
        };
        let method = checked.map_err(|rejection| (era, rejection))?;
        forward::check_params(&ask.head.headers)
            .map_err(|refusal| (era, Rejection::from(refusal).with_id(message.asked_id())))?;
        let session = match (era, method, permit) {
            (Era::Modern, ..) | (Era::Legacy, Some(Method::Initialize), _) | (.., None) => Ok(None),
            (Era::Legacy, _, Some(permit)) => {
                find_session(gateway, ask, permit, headers.session_id).map(Some)
            }
        };
        let session = session
            .map_err(|refusal| (era, Rejection::from(refusal).with_id(message.asked_id())))?;
        context::note(ask, &message, session.as_deref(), entry)
            .map_err(|refusal| (era, Rejection::from(refusal).with_id(message.asked_id())))?;
        let may_ask = era == Era::Modern && method.is_some_and(Method::may_ask);
        let id = message
            .id
            .filter(|_| message.kind == Kind::Request)
            // Copied: a part of the body would keep all of it for as long as an answer may be fetched again.
            .map(|id| Bytes::copy_from_slice(id.as_str().as_bytes()))
            .unwrap_or_default();
        Ok(Self {
            message,
            body: &ask.body,
            asker: Asker {
                id,
                era,
                method,
                scope: scope(ask, permit, method),
                subject: ask.caller.subject().clone(),
                body: if may_ask {
                    ask.body.clone()
                } else {
                    Bytes::new()
                },
                turn_bytes: ask.policy.calls.turn_bytes,
            },
            session,
            head: &ask.head.headers,
        })
    }

    /// A refusal of this message, with what its answer needs.
    pub(in crate::gateway) fn rejection(&self, refusal: Refusal) -> Rejection {
        let requested =
            (refusal.code == Code::UpstreamEra).then(|| Revision::LEGACY.as_str().into());
        Rejection {
            requested,
            ..Rejection::from(refusal).with_id(self.asker.id_text())
        }
    }

    /// Takes an id that is unique on every server and, in a session, a place among the requests in flight.
    pub(in crate::gateway) fn ticket(&self, gateway: &Gateway) -> Result<Ticket, Refusal> {
        let id = gateway.upstream.next_id();
        let place = match (&self.session, &self.message.id) {
            (Some(session), Some(own)) => {
                let key = match own.key() {
                    Cow::Borrowed(_) => self.asker.id.clone(),
                    Cow::Owned(key) => Bytes::from(key),
                };
                Some(session.begin(key, id)?)
            }
            _ => None,
        };
        Ok(Ticket {
            id,
            session: self.session.clone(),
            place,
        })
    }

    /// The request as it goes on to the server, perhaps from a round before.
    pub(in crate::gateway) fn request<'r>(
        &'r self,
        permit: &'r Permit,
        ticket: &Ticket,
        round: Option<&Round>,
        effect: &'r Effect,
        deadline: Deadline,
    ) -> Request<'r> {
        Request {
            permit,
            wire: self.wire(|| forward::fields(&self.message, self.head)),
            body: forward::body(
                &self.message,
                self.body,
                permit.server().relay,
                round,
                ticket.id,
            ),
            id: ticket.id,
            effect,
            credential: None,
            deadline,
        }
    }

    /// From where the caller looks at the server.
    pub(in crate::gateway) fn view(&self, permit: &Permit) -> View {
        if let Some(session) = &self.session {
            return session.view;
        }
        let offer = self.offer(permit);
        offer.map_or_else(View::plain, |offer| View::of(Revision::MODERN, &offer))
    }

    /// What a modern caller offers to the server; `None` where it offers nothing, or in a session.
    pub(in crate::gateway) fn offer(&self, permit: &Permit) -> Option<Offer> {
        forward::offer(&self.message, permit.server().relay)
    }

    /// The stream that its answer comes on.
    pub(in crate::gateway) fn line(&self, ticket: &Ticket, entry: &Entry) -> Line {
        match &self.session {
            Some(session) => Line::Session {
                session: session.clone(),
                call: Some(ticket.id),
                pause: Some(entry.held.pause()),
            },
            None => Line::Request {
                logs: self
                    .message
                    .meta()
                    .is_some_and(|meta| meta.log_level.is_some()),
            },
        }
    }

    /// How requests that serve this one travel: in its session, or alone with header fields of their own.
    pub(in crate::gateway) fn wire(&self, fields: impl FnOnce() -> FieldLines) -> Wire<'_> {
        match &self.session {
            Some(session) => Wire::Legacy(&session.upstream),
            None => Wire::Modern(fields()),
        }
    }
}

/// Who may share the answer, where it is one that caches keep.
fn scope(ask: &Ask, permit: Option<&Permit>, method: Option<Method>) -> Scope {
    let cacheable = method.is_some_and(Method::is_cacheable);
    let same = |permit: &Permit| policy::same_for_all(&ask.policy, permit.server());
    if cacheable && permit.is_some_and(same) {
        Scope::Servers
    } else {
        Scope::Private
    }
}

/// The session that a message of the older protocol names.
pub(in crate::gateway) fn find_session(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
    id: Option<&str>,
) -> Result<Arc<Session>, Refusal> {
    let Some(id) = id else {
        return Err(Refusal::new(
            Code::SessionRequired,
            "no `Mcp-Session-Id` header",
        ));
    };
    gateway
        .shared
        .sessions
        .find(id, &ask.caller, permit.server())
}

/// Failures after which the server may still be at work.
const GIVEN_UP: [Code; 7] = [
    Code::FirstByteTimeout,
    Code::IdleTimeout,
    Code::CallTimeout,
    Code::ResponseTooLarge,
    Code::AnswersOverloaded,
    Code::UpstreamEventTooLarge,
    Code::UpstreamMalformed,
];

fn check_media(headers: &ProtocolHeaders<'_>, all: &HeaderMap) -> Result<(), Refusal> {
    if !headers.content_type.is_some_and(headers::is_json) {
        let found = headers.content_type.unwrap_or("nothing");
        let found: String = found.chars().take(64).collect();
        return Err(Refusal::new(
            Code::ContentType,
            format!("`Content-Type` is `{found}`, expected `application/json` in UTF-8"),
        ));
    }
    if !headers::accepts_answers(all) {
        return Err(Refusal::new(
            Code::Accept,
            "`Accept` does not list both application/json and text/event-stream",
        ));
    }
    Ok(())
}

/// A request's identity on its way to the server, given up when dropped.
pub(in crate::gateway) struct Ticket {
    /// The id that the server sees.
    pub(in crate::gateway) id: u64,
    session: Option<Arc<Session>>,
    place: Option<InFlight>,
}

impl Ticket {
    /// That of a request that was answered already, and has no place among those in flight.
    pub(in crate::gateway) fn of_answered(id: u64, session: Arc<Session>) -> Self {
        Self {
            id,
            session: Some(session),
            place: None,
        }
    }

    /// Whether it has a place among the requests in flight of its session.
    pub(in crate::gateway) fn is_in_flight(&self) -> bool {
        self.place.is_some()
    }

    /// Its session; `None` in the modern era.
    pub(in crate::gateway) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// What `asking` returns, unless the client stops it first. It is taken pinned: by value it would be held twice.
    pub(in crate::gateway) async fn unless_stopped<T>(
        &self,
        asking: Pin<&mut impl Future<Output = Result<T, upstream::Error>>>,
    ) -> Result<T, upstream::Error> {
        tokio::select! {
            biased;
            answer = asking => answer,
            () = self.stopped() => Err(upstream::Error::Stopped),
        }
    }

    /// A request that was stopped while it waited for its turn is not sent.
    pub(in crate::gateway) fn check(&self) -> Result<(), Refusal> {
        match &self.place {
            Some(place) if place.is_stopped() => Err(upstream::Error::Stopped.into()),
            _ => Ok(()),
        }
    }

    /// Returns when the client cancels the request, or its session ends; never in the modern era, where closing the
    /// stream cancels.
    pub(in crate::gateway) async fn stopped(&self) {
        match &self.place {
            Some(place) => place.stopped().await,
            None => std::future::pending().await,
        }
    }

    /// Tells the server of a session that nobody waits for the answer any more (MCP 2025-11-25, cancellation).
    /// In the modern era, closing the stream has said so already.
    pub(in crate::gateway) fn abandon_after(&self, gateway: &Gateway, permit: &Permit, code: Code) {
        let Some(session) = self.session.clone().filter(|_| GIVEN_UP.contains(&code)) else {
            return;
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{},"reason":"timed out"}}}}"#,
            self.id
        );
        tell::later(gateway, permit, session, body.into(), ());
    }
}
