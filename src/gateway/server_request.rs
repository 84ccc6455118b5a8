//! A server's own requests to its client: `ping` is answered, the rest was never offered.

use std::sync::Arc;

use super::{Gateway, legacy, session::Session};
use crate::{
    mcp::{self, Era, Rejection},
    policy::Permit,
    refusal::Code,
};

/// Answers a request that came on a stream. In the modern era there are none, and no way to answer. A server that
/// asks more than it takes answers for gets no more of them.
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
    legacy::tell_later(gateway, permit, session.clone(), body, place);
}
