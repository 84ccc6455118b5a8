//! Replies: what was found and what of it reaches the caller, whole or streamed, and what must be recorded before the
//! last byte.

pub(super) mod finding;
pub(super) mod results;

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    vec,
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

/// The body of a reply: pieces already in memory, or a stream that ends by itself.
pub struct ReplyBody(Inner);

enum Inner {
    Whole(vec::IntoIter<Bytes>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl ReplyBody {
    /// Nothing.
    pub fn empty() -> Self {
        Self::pieces(Vec::new())
    }

    /// One piece; for answers that end no call (a listener's own errors, protocol faults).
    pub fn whole(bytes: Bytes) -> Self {
        Self::pieces(vec![bytes])
    }

    fn pieces(mut pieces: Vec<Bytes>) -> Self {
        pieces.retain(|piece| !piece.is_empty());
        Self(Inner::Whole(pieces.into_iter()))
    }

    fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
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
        let next = match &mut self.0 {
            Inner::Whole(pieces) => Poll::Ready(pieces.next()),
            Inner::Stream(stream) => stream.as_mut().poll_next(context),
        };
        next.map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Whole(pieces) => pieces.as_slice().is_empty(),
            Inner::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(pieces) => {
                let sizes = pieces.as_slice().iter().map(Bytes::len);
                SizeHint::with_exact(sizes.sum::<usize>() as u64)
            }
            Inner::Stream(_) => SizeHint::default(),
        }
    }
}

/// A JSON answer that ends a request whose record is kept.
pub(super) fn json(status: StatusCode, pieces: Vec<Bytes>, _proof: Proof) -> Response<ReplyBody> {
    let short = pieces.iter().map(Bytes::len).sum::<usize>() <= SHORT;
    let body = if short && pieces.len() > 1 {
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
