//! Owns: speaking MCP over HTTP to a tool server, in the era that it speaks.
//! Imports: layers 0–2.
//! Never: forwards a caller's credentials, cookies or session ids; repeats a request that may have been taken.
//! Fails as: [`Error`].

mod answer;
mod breaker;
mod era;
mod error;
mod event;
mod get;
mod message;
pub mod own;
mod resume;
mod send;
mod session;
mod stream;
mod subscribe;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use http::{Method, StatusCode};

pub use answer::Answer;
pub use breaker::{Breakers, Leave, OpenCircuit};
pub use era::Eras;
pub use error::Error;
pub use event::{Asking, Event, Item, Mark};
pub use message::{Edit, Message, ResultKind};
use resume::Way;
pub use send::Credentials;
pub use session::{Hello, Session};
pub use stream::Messages;

use crate::{
    catalog::PinnedTool,
    deadline::Deadline,
    egress::{Destination, Effect, Egress, FieldLines, Inbound, Outbound},
    policy::Permit,
    vault::Credential,
};

/// The way to tool servers; one for each worker, cheap to clone.
#[derive(Clone)]
pub struct Upstream {
    egress: Egress,
    eras: Arc<Eras>,
    breakers: Arc<Breakers>,
    ids: Arc<AtomicU64>,
    credentials: Arc<dyn Credentials>,
}

/// How a request travels.
pub enum Wire<'a> {
    /// Alone, with its metadata mirrored in headers (2026-07-28).
    Modern(FieldLines),
    /// In a session.
    Legacy(&'a Arc<Session>),
}

/// One JSON-RPC request, its id already the one that the upstream is to see.
pub struct Request<'a> {
    /// Who may, and where to.
    pub permit: &'a Permit,
    /// How it travels.
    pub wire: Wire<'a>,
    /// The JSON text.
    pub body: Bytes,
    /// The id in it.
    pub id: u64,
    /// Whether it may have an effect, with the proof that its intent is on disk.
    pub effect: &'a Effect,
    /// What shows its server whose it is, where that was asked for already.
    pub credential: Option<&'a Credential>,
    /// When it ends.
    pub deadline: Deadline,
}

/// What came back, and from where.
pub struct Answered {
    /// The answer, or why what came is none.
    pub answer: Result<Answer, Error>,
    /// Where it came from.
    pub destination: Destination,
}

impl Upstream {
    /// Over `egress`; ids and what is known of servers are shared by all workers, so that ids are unique on every server.
    /// Servers that want to know whose a request is are shown what `credentials` gives.
    pub fn new(
        egress: Egress,
        eras: Arc<Eras>,
        breakers: Arc<Breakers>,
        ids: Arc<AtomicU64>,
        credentials: Arc<dyn Credentials>,
    ) -> Self {
        Self {
            egress,
            eras,
            breakers,
            ids,
            credentials,
        }
    }

    /// An id that no other request of this process has.
    pub fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Calls a tool that the server is known to offer.
    pub fn call(
        &self,
        _tool: &PinnedTool,
        request: Request<'_>,
    ) -> impl Future<Output = Result<Answered, Error>> {
        self.ask(request)
    }

    /// Asks anything that has no effect of its own: lists, discovery. A modern request goes only to a server that is
    /// known to be modern, since another might take it for something else.
    pub async fn ask(&self, request: Request<'_>) -> Result<Answered, Error> {
        if let Wire::Modern(_) = request.wire {
            self.require_modern(request.permit, request.deadline)
                .await?;
        }
        self.exchange(request).await
    }

    /// Asks for an answer that is looked at before it goes on: whatever form it comes in, it is waited for.
    pub async fn ask_whole(
        &self,
        request: Request<'_>,
    ) -> Result<(Result<Message, Error>, Destination), Error> {
        let Answered {
            answer,
            destination,
        } = self.ask(request).await?;
        let message = match answer {
            Ok(answer) => answer.whole().await,
            Err(error) => Err(error),
        };
        Ok((message, destination))
    }

    async fn exchange(&self, request: Request<'_>) -> Result<Answered, Error> {
        let Request {
            permit,
            id,
            deadline,
            ..
        } = request;
        let session = match request.wire {
            Wire::Modern(_) => None,
            Wire::Legacy(session) => Some(session),
        };
        let Inbound {
            status,
            headers,
            destination,
            body,
        } = self.post(request).await?;
        let answer = answer::read(permit, id, status, headers, body).await;
        Ok(Answered {
            answer: match session {
                Some(session) => answer
                    .map(|answer| answer.resumable(|| Way::new(self, session, permit, deadline))),
                None => answer,
            },
            destination,
        })
    }

    /// Sends what has no answer: a notification, or a response to the server's own request.
    pub async fn tell(
        &self,
        permit: &Permit,
        session: &Session,
        body: Bytes,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let out = Outbound {
            permit,
            method: Method::POST,
            fields: session.fields(),
            body,
            effect: &Effect::Read,
            deadline,
        };
        let inbound = self.send(out, None).await?;
        let status = inbound.status;
        // The few bytes that servers send with a 202 are read, so that the connection can be used again.
        let _ = inbound.body.collect(4096).await;
        if status.is_success() {
            return Ok(());
        }
        Err(answer::status_error(permit, status))
    }

    /// Sends a request. One in a session that the server no longer knows is sent again, once, in a session that is
    /// opened anew: the 404 says that it was not taken (MCP 2025-11-25, session management).
    async fn post(&self, request: Request<'_>) -> Result<Inbound, Error> {
        let Request {
            permit,
            wire,
            body,
            effect,
            credential,
            deadline,
            ..
        } = request;
        let out = |fields, body| Outbound {
            permit,
            method: Method::POST,
            fields,
            body,
            effect,
            deadline,
        };
        let session = match wire {
            Wire::Modern(fields) => return self.send(out(fields, body), credential).await,
            Wire::Legacy(session) => session,
        };
        let mut seen = session.epoch();
        if seen == session::UNOPENED {
            // Rare, and its state large: boxed, it does not weigh on every call.
            Box::pin(self.renew(permit, session, seen, deadline)).await?;
            seen = session.epoch();
        }
        let out = || out(session.fields(), body.clone());
        let inbound = self.send(out(), credential).await?;
        if inbound.status != StatusCode::NOT_FOUND || !session.has_id() {
            return Ok(inbound);
        }
        drop(inbound);
        // As rare.
        let again = Box::pin(async {
            self.renew(permit, session, seen, deadline).await?;
            self.send(out(), credential).await
        });
        let inbound = again.await?;
        if inbound.status == StatusCode::NOT_FOUND {
            return Err(session::lost(permit));
        }
        Ok(inbound)
    }
}
