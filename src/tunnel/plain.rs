//! Plain requests (absolute-form, RFC 9112, section 3.2.2): one request and its answer, from the client's stream to the
//! target and back.

mod error;
mod out;
mod pump;
mod response;

use std::time::Duration;

use bytes::BytesMut;
use http::{StatusCode, header::EXPECT};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::Instant,
};

pub use error::PlainError;

use self::pump::Pump;
use super::{Body, Head, proxy::OPENING};
use crate::{
    address::JudgedAddr,
    deadline::Deadline,
    egress::{Destination, Egress, Incoming, Io, Request, Sent},
    policy::ProxyPermit,
};

/// The connection that a request came on.
pub struct Source<'a, S> {
    /// The stream.
    pub io: &'a mut S,
    /// What has come behind the head. Afterwards, what has come behind the request.
    pub input: &'a mut BytesMut,
}

/// How long an exchange may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The longest time in which no byte moves, neither way.
    pub idle: Duration,
    /// The end of all of it.
    pub until: Instant,
}

/// What became of a request.
#[derive(Debug)]
pub struct Forwarded {
    /// The status of the answer whose head the client was given. `None`: nothing was written to the client, `error` says
    /// why, and the caller answers in its place.
    pub status: Option<StatusCode>,
    /// What went wrong; behind a status, the answer was cut short.
    pub error: Option<PlainError>,
    /// How the connection goes on.
    pub next: Next,
    /// Where the request went, once that was judged.
    pub destination: Option<Destination>,
    /// Where exactly, once it was connected to.
    pub address: Option<JudgedAddr>,
    /// Bytes of the request's body, without their framing.
    pub sent: u64,
    /// Bytes of the answer, its head included, as the client got them.
    pub received: u64,
}

/// How a client's connection goes on after a request.
pub enum Next {
    /// Another request may follow.
    Keep,
    /// It is closed in the usual way; of a client that still sends, some is read and dropped first.
    Close,
    /// It is closed at once: the client must not take what it got for the whole answer. Its framing says so, but for an
    /// answer without a length to an HTTP/1.0 client, which has no other end (RFC 9112, section 8).
    Cut,
    /// It is a WebSocket from here on. Of neither side a byte was passed on yet.
    Tunnel {
        /// The connection to the target.
        io: Box<dyn Io>,
        /// What came on it behind the head of its answer.
        early: bytes::Bytes,
    },
}

/// Sends a request where its permit leads, and its answer to the client. Nothing is written to the client before the head
/// of an answer has come; `begun` is told where the request goes, as soon as that is certain.
pub async fn forward<S>(
    egress: &Egress,
    permit: &ProxyPermit,
    head: &Head,
    client: Source<'_, S>,
    bounds: Bounds,
    begun: impl FnOnce(&Destination, JudgedAddr),
) -> Forwarded
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut body = match head.body {
        Body::None => Incoming::of_length(0),
        Body::Length(length) => Incoming::of_length(length),
        Body::Chunked => Incoming::chunked(),
    };
    // What is wrong already is told before anything is sent.
    let first = match body.take(client.input) {
        Ok(first) => first,
        Err(fault) => return Forwarded::unsent(PlainError::Body(fault), Next::Close),
    };
    let sent = first.len() as u64;
    let request = Request {
        method: &head.method,
        path: head.path.as_deref().unwrap_or("/"),
        headers: &head.headers,
        framing: framing(head.body),
        websocket: head.websocket,
        whole: body.is_ended(),
        first,
    };
    let left = bounds.until.saturating_duration_since(Instant::now());
    let deadline = Deadline::after(left.min(OPENING));
    match egress.forward(permit, request, deadline).await {
        Ok(exchange) => {
            begun(exchange.destination(), exchange.address());
            let mut pump = Pump::new(head, client, body, exchange, bounds);
            pump.sent = sent;
            pump.run().await
        }
        Err(failed) => {
            let next = match body.is_ended() && head.persists {
                true => Next::Keep,
                false => Next::Close,
            };
            let destination = failed.destination.map(|destination| *destination);
            Forwarded {
                destination,
                ..Forwarded::unsent(failed.error.into(), next)
            }
        }
    }
}

impl Forwarded {
    fn unsent(error: PlainError, next: Next) -> Self {
        Self {
            status: None,
            error: Some(error),
            next,
            destination: None,
            address: None,
            sent: 0,
            received: 0,
        }
    }
}

impl std::fmt::Debug for Next {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Keep => "Keep",
            Self::Close => "Close",
            Self::Cut => "Cut",
            Self::Tunnel { .. } => "Tunnel",
        })
    }
}

fn framing(body: Body) -> Sent {
    match body {
        Body::None => Sent::Nothing,
        Body::Length(length) => Sent::Length(length),
        Body::Chunked => Sent::Chunked,
    }
}

/// Whether the client waits for 100 before it sends the body (RFC 9110, section 10.1.1). The expectation goes on to the
/// target, and so does its answer: whoever said 100 in its place would ask for a body that it may not want.
fn expects(head: &Head) -> bool {
    let mut values = head.headers.get_all(EXPECT).iter();
    head.is_current && values.any(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}
