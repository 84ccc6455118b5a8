//! What a server is told that has no answer: notifications, and responses to its own requests.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::Session;
use crate::{
    deadline::Deadline,
    gateway::{Gateway, limits::seats::Seats},
    mcp::{self, Era, Rejection},
    policy::Permit,
    refusal::Code,
};

/// The longest that a message without an answer may take.
pub(super) const TELLING: Duration = Duration::from_secs(10);

/// Messages that nobody waits for, on their way at once at most: of one key, and in all.
const PER_KEY: usize = 256;
const IN_ALL: usize = 2_048;

/// The places for messages that nobody waits for.
pub(in crate::gateway) fn seats() -> Seats {
    Seats::new(PER_KEY, IN_ALL)
}

/// Sends a message without holding anyone up for it; lets go of `held` once it is sent. Each takes a connection that no
/// client's stands for, so there are only so many: what is too much is left out, as if it had been lost on its way.
pub(in crate::gateway) fn later(
    gateway: &Gateway,
    permit: &Permit,
    session: Arc<Session>,
    body: Bytes,
    held: impl Send + 'static,
) {
    let evidence = &session.subject().evidence;
    let Some(seat) = gateway.shared.tellings.take(evidence) else {
        tracing::debug!(server = %permit.server().name, "too many messages wait for servers to take them");
        return;
    };
    let (upstream, permit) = (gateway.upstream.clone(), permit.clone());
    tokio::spawn(async move {
        let _held = (held, seat);
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
pub(in crate::gateway) fn pong(
    gateway: &Gateway,
    permit: &Permit,
    session: &Arc<Session>,
    id: &str,
) {
    respond(gateway, permit, session, || {
        mcp::reply::empty(Era::Legacy, id)
    });
}

/// Answers a server's question that the client is not asked.
pub(in crate::gateway) fn refuse(
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
