//! One HTTP/1.1 connection that belongs to nobody but the request it carries: no task of its own polls it.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http1::{Builder, Connection, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{task::coop::unconstrained, time::Instant};

use super::Io;
use crate::deadline::Alarm;

/// The most bytes of a response head.
const MAX_HEAD: usize = 64 * 1024;
/// The most bytes of one read. A body that comes in one is not put together from two; hyper reads less until more comes.
const MAX_READ: usize = 256 * 1024;

/// A connection with its handle.
pub(super) struct Live {
    alarm: Alarm,
    handle: SendRequest<Full<Bytes>>,
    /// Dropped as soon as it ends: only then does hyper give back a request that it did not take.
    connection: Option<Driver>,
}

/// hyper's half that reads and writes.
struct Driver(Connection<TokioIo<Box<dyn Io>>, Full<Bytes>>);

/// A request that its connection gave back: closed before it took the request, it has written no byte of it. To hold
/// this is the only way to send a request again.
pub(super) struct NotSent {
    request: Box<Request<Full<Bytes>>>,
    source: hyper::Error,
}

impl NotSent {
    /// The request, for another connection.
    pub(super) fn into_request(self) -> Request<Full<Bytes>> {
        *self.request
    }

    /// What closed the connection, where there is no other.
    pub(super) fn into_source(self) -> hyper::Error {
        self.source
    }
}

/// An exchange without a response.
pub(super) enum Broken {
    /// Nothing was sent.
    NotSent(NotSent),
    /// The request was taken; what the peer saw of it is not known.
    Lost(hyper::Error),
    /// The time ran out.
    Late,
}

impl Live {
    /// Wraps a fresh stream.
    pub(super) async fn open(stream: Box<dyn Io>) -> hyper::Result<Box<Self>> {
        // hyper takes 100 header fields at most unless it is told otherwise, even to take 100.
        let (handle, connection) = Builder::new()
            .max_header_size(MAX_HEAD)
            .max_buf_size(MAX_READ)
            // Requests are small: head and body leave in one buffer and one plain write.
            .writev(false)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Box::new(Self {
            alarm: Alarm::default(),
            handle,
            connection: Some(Driver(connection)),
        }))
    }

    /// Lets the connection read and write; false once it has ended.
    pub(super) fn turn(&mut self, context: &mut Context<'_>) -> bool {
        turn(&mut self.connection, context)
    }

    /// As [`Live::turn`], without being woken by what comes later. Who asks for the connection's next step in the same
    /// breath wants this: hyper's halves wake one another by what each of them was polled with, and would have the whole
    /// call polled again for nothing.
    pub(super) fn nudge(&mut self) -> bool {
        self.turn(&mut Context::from_waker(Waker::noop()))
    }

    /// Sets the end of what is waited for next, once nothing else is ready.
    pub(super) fn give_until(&mut self, end: Instant) {
        self.alarm.set(Some(end));
    }

    /// Ready once that end has come.
    pub(super) fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.alarm.poll(context)
    }

    /// Whether it has nothing more to do for the request before.
    pub(super) fn is_idle(&self) -> bool {
        self.handle.is_ready()
    }

    /// Whether it would take another request now: it is idle, its peer has neither closed it nor said anything unasked.
    pub(super) fn reusable(&mut self) -> bool {
        self.nudge() && self.is_idle()
    }

    /// Sends `request` and waits until `until` for the head of the response.
    pub(super) async fn exchange(
        mut self: Box<Self>,
        request: Request<Full<Bytes>>,
        until: Instant,
    ) -> Result<(Box<Self>, Response<Incoming>), Broken> {
        let Self {
            alarm,
            handle,
            connection,
        } = &mut *self;
        alarm.set(Some(until));
        // Only the connection brings the response on, and it is polled just before: the response need not wake anyone,
        // nor may it be held back by a spent budget, which would.
        let mut response = pin!(unconstrained(handle.try_send_request(request)));
        let mut sent = false;
        let mut step = |context: &mut Context<'_>| {
            turn(connection, context);
            response
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
        };
        let result = poll_fn(|context| {
            // After the request has left, a wake-up usually brings the response.
            if std::mem::replace(&mut sent, true)
                && let Poll::Ready(result) = step(&mut Context::from_waker(Waker::noop()))
            {
                return Poll::Ready(Some(result));
            }
            match step(context) {
                Poll::Ready(result) => Poll::Ready(Some(result)),
                Poll::Pending => alarm.poll(context).map(|()| None),
            }
        })
        .await;
        match result {
            Some(Ok(response)) => Ok((self, response)),
            Some(Err(mut error)) => match error.take_message() {
                Some(request) => Err(Broken::NotSent(NotSent {
                    request: Box::new(request),
                    source: error.into_error(),
                })),
                None => Err(Broken::Lost(error.into_error())),
            },
            None => Err(Broken::Late),
        }
    }
}

/// Lets the connection read and write; false once it has ended.
fn turn(connection: &mut Option<Driver>, context: &mut Context<'_>) -> bool {
    let goes_on = connection
        .as_mut()
        .is_some_and(|driver| Pin::new(&mut driver.0).poll(context).is_pending());
    if !goes_on {
        *connection = None;
    }
    goes_on
}
