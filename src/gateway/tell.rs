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

/// Answers a server's `ping`.
pub(super) fn pong(gateway: &Gateway, permit: &Permit, session: &Arc<Session>, id: &str) {
    respond(gateway, permit, session, || {
        mcp::reply::empty(Era::Legacy, id)
    });
}

/// Answers a server's question that the client is not asked.
pub(super) fn refuse(
    gateway: &Gateway,
    permit: &Permit,
    session: &Arc<Session>,
    id: &str,
    code: Code,
    why: &str,
) {
    respond(gateway, permit, session, || {
        mcp::reply::error(Era::Legacy, &Rejection::new(code, why).with_id(Some(id)))
    });
}

/// A server that asks more than it takes answers for gets no more.
fn respond(
    gateway: &Gateway,
    permit: &Permit,
    session: &Arc<Session>,
    body: impl FnOnce() -> Bytes,
) {
    match session.answer() {
        Some(place) => later(gateway, permit, session.clone(), body(), place),
        None => {
            tracing::debug!(server = %permit.server().name, "a server asks faster than it takes answers");
        }
    }
}
