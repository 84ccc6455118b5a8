//! One HTTP/1.1 connection that belongs to nobody but the request it carries: no task of its own polls it.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http1::{Builder, Connection, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, sleep_until};

use super::Io;

/// The most bytes of a response head.
const MAX_HEAD: usize = 64 * 1024;
/// The most header fields of a response head.
const MAX_HEADERS: usize = 100;

/// A connection with its handle.
pub(super) struct Live {
    handle: SendRequest<Full<Bytes>>,
    connection: Connection<TokioIo<Box<dyn Io>>, Full<Bytes>>,
}

/// An exchange without a response.
pub(super) enum Broken {
    /// The connection was closed before it took the request, which is given back.
    Unsent(Box<Request<Full<Bytes>>>, hyper::Error),
    /// The request was taken; what the peer saw of it is not known.
    Lost(hyper::Error),
    /// The time ran out.
    Late,
}

impl Live {
    /// Wraps a fresh stream.
    pub(super) async fn open(stream: Box<dyn Io>) -> hyper::Result<Box<Self>> {
        let (handle, connection) = Builder::new()
            .max_headers(MAX_HEADERS)
            .max_header_size(MAX_HEAD)
            .max_buf_size(MAX_HEAD)
            // Requests are small: head and body leave in one buffer and one plain write.
            .writev(false)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Box::new(Self { handle, connection }))
    }

    /// Lets the connection read and write; false once it has ended.
    pub(super) fn turn(&mut self, context: &mut Context<'_>) -> bool {
        Pin::new(&mut self.connection).poll(context).is_pending()
    }

    /// Whether it would take another request now: it is idle, its peer has neither closed it nor said anything unasked.
    pub(super) fn reusable(&mut self, context: &mut Context<'_>) -> bool {
        self.turn(context) && self.handle.is_ready()
    }

    /// Sends `request` and waits until `until` for the head of the response.
    pub(super) async fn exchange(
        mut self: Box<Self>,
        request: Request<Full<Bytes>>,
        until: Instant,
    ) -> Result<(Box<Self>, Response<Incoming>), Broken> {
        let mut response = pin!(self.handle.try_send_request(request));
        let mut timer = pin!(sleep_until(until));
        let mut ended = false;
        let result = poll_fn(|context| {
            ended = ended || Pin::new(&mut self.connection).poll(context).is_ready();
            match response.as_mut().poll(context) {
                Poll::Ready(result) => Poll::Ready(Some(result)),
                Poll::Pending => timer.as_mut().poll(context).map(|()| None),
            }
        })
        .await;
        match result {
            Some(Ok(response)) => Ok((self, response)),
            Some(Err(mut error)) => match error.take_message() {
                Some(request) => Err(Broken::Unsent(Box::new(request), error.into_error())),
                None => Err(Broken::Lost(error.into_error())),
            },
            None => Err(Broken::Late),
        }
    }
}
