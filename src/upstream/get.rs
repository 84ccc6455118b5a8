//! What is fetched by GET in a session: the stream of what a server says unasked, and what is left of one that broke.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode};

use super::{
    Error, Messages, Session, Upstream,
    answer::{Type, content_type_error, status_error},
    resume::Way,
    session::{UNOPENED, lost},
};
use crate::{
    deadline::Deadline,
    egress::{Body, Effect, Inbound, Outbound},
    mcp::headers,
    policy::Permit,
};

impl Upstream {
    /// Opens the stream of what the server says unasked, or resumes it after the event `last`. `None` where it
    /// offers none (405). In a session that the server no longer knows it is opened anew, once, from its beginning.
    pub async fn listen(
        &self,
        permit: &Permit,
        session: &Session,
        last: Option<&HeaderValue>,
        deadline: Deadline,
    ) -> Result<Option<Messages>, Error> {
        let mut seen = session.epoch();
        if seen == UNOPENED {
            self.renew(permit, session, seen, deadline).await?;
            seen = session.epoch();
        }
        let mut inbound = self.fetch(permit, session, last, deadline).await?;
        if inbound.status == StatusCode::NOT_FOUND && session.has_id() {
            drop(inbound);
            self.renew(permit, session, seen, deadline).await?;
            inbound = self.fetch(permit, session, None, deadline).await?;
            if inbound.status == StatusCode::NOT_FOUND {
                return Err(lost(permit));
            }
        }
        read_listening(permit, inbound)
    }

    /// What is left of the answer to the request `id` after the event `last`, asked for once it is waited for.
    pub fn resume(
        &self,
        permit: &Permit,
        session: &Arc<Session>,
        id: u64,
        last: HeaderValue,
        deadline: Deadline,
    ) -> Messages {
        let way = Way::new(self, session, permit, deadline).after(last);
        Messages::resumed(permit, id, way)
    }

    /// What is left of the stream that had the event `last`.
    pub(super) async fn rest(
        &self,
        permit: &Permit,
        session: &Session,
        last: &HeaderValue,
        deadline: Deadline,
    ) -> Result<Box<Body>, Error> {
        let inbound = self.fetch(permit, session, Some(last), deadline).await?;
        read_stream(permit, inbound)
    }

    async fn fetch(
        &self,
        permit: &Permit,
        session: &Session,
        last: Option<&HeaderValue>,
        deadline: Deadline,
    ) -> Result<Inbound, Error> {
        let mut fields = session.fields();
        if let Some(last) = last {
            fields.add(&headers::LAST_EVENT_ID, last);
        }
        let out = Outbound {
            permit,
            method: Method::GET,
            fields,
            body: Bytes::new(),
            effect: &Effect::Read,
            deadline,
        };
        self.send(out, None).await
    }
}

/// Reads the answer to a GET: the stream, or `None` where the server offers none.
fn read_listening(permit: &Permit, inbound: Inbound) -> Result<Option<Messages>, Error> {
    if inbound.status == StatusCode::METHOD_NOT_ALLOWED {
        return Ok(None);
    }
    let body = read_stream(permit, inbound)?;
    Ok(Some(Messages::listening(permit, body.open_ended())))
}

/// Reads the answer to a GET that only an event stream can be.
fn read_stream(permit: &Permit, inbound: Inbound) -> Result<Box<Body>, Error> {
    match (inbound.status, Type::of(&inbound.headers)) {
        (StatusCode::OK, Type::Events) => Ok(inbound.body),
        (status, _) if !status.is_success() => Err(status_error(permit, status)),
        _ => Err(content_type_error(permit, &inbound.headers)),
    }
}
