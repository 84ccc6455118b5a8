//! The client's side of a connection: heads, and what is answered outside of a tunnel.

use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    Head, HeadError, Heads, Timeouts,
    answer::{self, Asked, Refused},
};
use crate::{deadline::Alarm, refusal::Code};

/// Bytes that one read may bring.
const SCRATCH: usize = 64 * 1024;
/// How long, and how much, a client that was refused may still send.
const LINGER: (Duration, usize) = (Duration::from_secs(1), 256 * 1024);

thread_local! {
    /// Where every read of a worker lands first: a connection holds no buffer while nothing comes.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH]);
}

/// Why no head came.
#[derive(Debug)]
pub(super) enum Ended {
    /// Nothing had begun.
    Quietly,
    /// Within a head.
    Fault(Code, &'static str),
    /// The head is refused.
    Head(HeadError),
}

/// A connection, and what came that nobody has read.
pub(super) struct Client<S> {
    pub(super) stream: S,
    pub(super) input: BytesMut,
    pub(super) timeouts: Timeouts,
    pub(super) alarm: Alarm,
    served: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(super) fn new(stream: S, timeouts: Timeouts) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
            timeouts,
            alarm: Alarm::default(),
            served: false,
        }
    }

    /// The next head.
    pub(super) async fn head(&mut self, drain: &CancellationToken) -> Result<Head, Ended> {
        let mut heads = Heads::default();
        let mut draining = pin!(drain.cancelled());
        let mut begun = false;
        let wait = match self.served {
            true => self.timeouts.idle,
            false => self.timeouts.head,
        };
        self.alarm.set(Some(Instant::now() + wait));
        let head = poll_fn(|cx| {
            loop {
                if !self.input.is_empty() {
                    if !begun && self.served {
                        self.alarm.set(Some(Instant::now() + self.timeouts.head));
                    }
                    begun = true;
                    match heads.next(&mut self.input) {
                        Ok(Some(head)) => return Poll::Ready(Ok(head)),
                        Ok(None) => {}
                        Err(error) => return Poll::Ready(Err(Ended::Head(error))),
                    }
                }
                match self.poll_fill(cx) {
                    Poll::Ready(Ok(1..)) => continue,
                    Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                        let fault = Ended::Fault(Code::TlsFailed, "a TLS record cannot be read");
                        return Poll::Ready(Err(fault));
                    }
                    Poll::Ready(_) if begun => {
                        let fault =
                            Ended::Fault(Code::ClientGone, "the request head was cut short");
                        return Poll::Ready(Err(fault));
                    }
                    Poll::Ready(_) => return Poll::Ready(Err(Ended::Quietly)),
                    Poll::Pending => {}
                }
                let late = self.alarm.poll(cx).is_ready();
                return match begun {
                    true if late => Poll::Ready(Err(Ended::Fault(
                        Code::SlowHead,
                        "the request head did not end in time",
                    ))),
                    false if late || draining.as_mut().poll(cx).is_ready() => {
                        Poll::Ready(Err(Ended::Quietly))
                    }
                    _ => Poll::Pending,
                };
            }
        })
        .await;
        self.served = true;
        self.release();
        head
    }

    /// Reads what has come behind the input, as long as the scratch takes it; 0 is the end.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        poll_scratch(&mut self.stream, cx, |_, bytes| {
            self.input.extend_from_slice(bytes);
            bytes.len()
        })
    }

    /// Gives the room of an empty input back.
    pub(super) fn release(&mut self) {
        if self.input.is_empty() {
            self.input = BytesMut::new();
        }
    }

    /// Writes all of `bytes`; false where the client does not take them.
    pub(super) async fn write(&mut self, mut bytes: &[u8]) -> bool {
        self.alarm.set(Some(Instant::now() + self.timeouts.stall));
        poll_fn(|cx| {
            while !bytes.is_empty() {
                match Pin::new(&mut self.stream).poll_write(cx, bytes) {
                    Poll::Ready(Ok(written @ 1..)) => bytes = &bytes[written..],
                    Poll::Ready(_) => return Poll::Ready(false),
                    Poll::Pending => return self.alarm.poll(cx).map(|()| false),
                }
            }
            match Pin::new(&mut self.stream).poll_flush(cx) {
                Poll::Ready(flushed) => Poll::Ready(flushed.is_ok()),
                Poll::Pending => self.alarm.poll(cx).map(|()| false),
            }
        })
        .await
    }

    /// Answers with a refusal, and ends the connection.
    pub(super) async fn refuse(mut self, refused: &Refused, asked: &Asked) {
        let answer = answer::bytes(refused, asked, false);
        if self.write(&answer).await {
            self.linger().await;
        }
    }

    /// Ends our side and reads on for a moment: a connection that is closed before all was read is reset, and the answer
    /// may be lost with it (RFC 9112, section 9.6).
    pub(super) async fn linger(&mut self) {
        let (time, mut left) = LINGER;
        self.alarm.set(Some(Instant::now() + time));
        // One that cannot be told is read to its end all the same.
        let _told = poll_fn(|cx| match Pin::new(&mut self.stream).poll_shutdown(cx) {
            Poll::Pending => self.alarm.poll(cx).map(Ok),
            told => told,
        })
        .await;
        poll_fn(|cx| {
            loop {
                match poll_scratch(&mut self.stream, cx, |_, bytes| bytes.len()) {
                    Poll::Ready(Ok(read @ 1..)) if read < left => left -= read,
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return self.alarm.poll(cx),
                }
            }
        })
        .await;
    }
}

/// Reads once, and gives what came to `take`.
pub(super) fn poll_scratch<S: AsyncRead + Unpin, T>(
    stream: &mut S,
    cx: &mut Context<'_>,
    take: impl FnOnce(&mut Context<'_>, &[u8]) -> T,
) -> Poll<io::Result<T>> {
    BUFFER.with_borrow_mut(|buffer| {
        let mut into = ReadBuf::new(buffer);
        ready!(Pin::new(stream).poll_read(cx, &mut into))?;
        Poll::Ready(Ok(take(cx, into.filled())))
    })
}
