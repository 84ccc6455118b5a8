//! Subscriptions of the modern era: a request whose answer is a stream without an end of its own.

use tokio::time::timeout_at;

use super::{
    Answer, Answered, Error, Request, Upstream,
    answer::{self, Type},
};
use crate::{
    deadline::Deadline,
    egress::{self, Inbound},
    policy::Permit,
};

impl Upstream {
    /// Opens a subscription (MCP 2026-07-28, subscriptions): its answer is a stream that either side may end, or an
    /// error.
    pub async fn subscribe(&self, request: Request<'_>) -> Result<Answered, Error> {
        let Request { permit, id, .. } = request;
        let opening = Deadline::after(permit.server().limits.call);
        self.require_modern(permit, opening).await?;
        let inbound = self.post(request).await?;
        let destination = inbound.destination.clone();
        let answer = read(permit, id, inbound, opening).await;
        Ok(Answered {
            answer,
            destination,
        })
    }
}

/// Reads the answer; what is no stream has come by `end`.
async fn read(permit: &Permit, id: u64, inbound: Inbound, end: Deadline) -> Result<Answer, Error> {
    let server = || permit.server().name.clone();
    let Inbound {
        status,
        headers,
        destination,
        mut body,
    } = inbound;
    if let Type::Events = Type::of(&headers) {
        body = body.open_ended();
    }
    let host = destination.host;
    let reading = timeout_at(
        end.instant(),
        answer::read(permit, id, status, headers, body),
    );
    let answer = reading.await.map_err(|_| Error::Egress {
        server: server(),
        source: egress::Error::CallTimeout { host },
        destination: None,
    })?;
    match answer? {
        Answer::Whole(message) if message.result().is_some() => Err(Error::Malformed {
            server: server(),
            reason: "its answer to subscriptions/listen is no event stream".to_owned(),
        }),
        answer => Ok(answer),
    }
}
