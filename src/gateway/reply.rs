//! Replies: whole or streamed, and what must be recorded before their last byte.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};

use crate::audit::{Outcome, Recorded, Verdict};

/// Proof that what a reply ends was recorded: queued for reads and refusals, durable for side effects.
#[derive(Debug)]
pub(super) enum Proof {
    /// A read, or a refusal.
    Queued(Recorded<Verdict>),
    /// A side effect.
    Durable(Recorded<Outcome>),
    /// None can be had: the reply says that records cannot be kept.
    Impossible,
}

/// Pieces of so many bytes together leave as one: to copy them costs less than to send them one by one.
const SHORT: usize = 2048;

/// The body of a reply: up to three pieces already in memory, or a stream that ends by itself.
pub struct ReplyBody(Inner);

enum Inner {
    Whole { pieces: [Bytes; 3], next: usize },
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl ReplyBody {
    /// Nothing.
    pub fn empty() -> Self {
        Self::pieces([Bytes::new(), Bytes::new(), Bytes::new()])
    }

    /// One piece; for answers that end no call (a listener's own errors, protocol faults).
    pub fn whole(bytes: Bytes) -> Self {
        Self::pieces([bytes, Bytes::new(), Bytes::new()])
    }

    pub(super) fn pieces(pieces: [Bytes; 3]) -> Self {
        Self(Inner::Whole { pieces, next: 0 })
    }

    pub(super) fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Inner::Stream(Box::pin(stream)))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Inner::Stream(stream) => stream
                .as_mut()
                .poll_next(context)
                .map(|next| next.map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Whole { pieces, next } => {
                while let Some(piece) = pieces.get_mut(*next) {
                    *next += 1;
                    if !piece.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(std::mem::take(piece)))));
                    }
                }
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Whole { pieces, next } => pieces[(*next).min(3)..].iter().all(Bytes::is_empty),
            Inner::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole { pieces, next } => SizeHint::with_exact(
                pieces[(*next).min(3)..]
                    .iter()
                    .map(|piece| piece.len() as u64)
                    .sum(),
            ),
            Inner::Stream(_) => SizeHint::default(),
        }
    }
}

/// A JSON answer that ends a request whose record is kept.
pub(super) fn json(status: StatusCode, pieces: [Bytes; 3], _proof: Proof) -> Response<ReplyBody> {
    let body = if pieces.iter().map(Bytes::len).sum::<usize>() <= SHORT {
        ReplyBody::whole(pieces.concat().into())
    } else {
        ReplyBody::pieces(pieces)
    };
    with_type(status, "application/json", body)
}

/// An event stream; it holds back its last event until that is recorded.
pub(super) fn events(stream: impl Stream<Item = Bytes> + Send + 'static) -> Response<ReplyBody> {
    let mut reply = with_type(
        StatusCode::OK,
        "text/event-stream",
        ReplyBody::stream(stream),
    );
    reply.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    // Proxies in between must not gather events (MCP 2026-07-28, streamable HTTP).
    reply
        .headers_mut()
        .insert("x-accel-buffering", HeaderValue::from_static("no"));
    reply
}

/// A status without a body.
pub(super) fn bare(status: StatusCode, _proof: Proof) -> Response<ReplyBody> {
    let mut reply = Response::new(ReplyBody::empty());
    *reply.status_mut() = status;
    reply
}

fn with_type(
    status: StatusCode,
    content_type: &'static str,
    body: ReplyBody,
) -> Response<ReplyBody> {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}
