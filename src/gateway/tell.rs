//! What a server is told that has no answer: notifications, and responses to its own requests.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{Gateway, session::Session};
use crate::{
    deadline::Deadline,
    mcp::{self, Era, Rejection},
    policy::Permit,
    refusal::Code,
};

/// The longest that a message without an answer may take.
pub(super) const TELLING: Duration = Duration::from_secs(10);

/// Sends a message without holding anyone up for it; lets go of `held` once it is sent.
pub(super) fn later(
    gateway: &Gateway,
    permit: &Permit,
    session: Arc<Session>,
    body: Bytes,
    held: impl Send + 'static,
) {
    let (upstream, permit) = (gateway.upstream.clone(), permit.clone());
    tokio::spawn(async move {
        let _held = held;
        let deadline = Deadline::after(TELLING);
        let told = upstream
            .tell(&permit, &session.upstream, body, deadline)
            .await;
        if let Err(error) = told {
            tracing::debug!(server = %permit.server().name, code = error.code().as_str(), "a message was not taken");
        }
    });
}

/// Answers a request that a server made on a stream: `ping`, and nothing else, since nothing else was offered. In the
/// modern era there are none, and no way to answer. A server that asks more than it takes answers for gets no more.
pub(super) fn answer(
    gateway: &Gateway,
    permit: &Permit,
    session: Option<&Arc<Session>>,
    method: &str,
    id: &str,
) {
    let Some(session) = session else {
        return;
    };
    let Some(place) = session.answer() else {
        tracing::debug!(server = %permit.server().name, method, "a server asks faster than it takes answers");
        return;
    };
    let body = if method == "ping" {
        mcp::reply::empty(Era::Legacy, id)
    } else {
        let rejection = Rejection::new(Code::MethodUnknown, "this client does not offer that");
        mcp::reply::error(&rejection.with_id(Some(id)))
    };
    later(gateway, permit, session.clone(), body, place);
}
