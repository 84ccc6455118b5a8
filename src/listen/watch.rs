//! What a connection is waiting for, told from the bytes that pass: hyper has one timeout for a head and for the quiet
//! before it, and none for a client that does not read.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

use super::Limits;
use crate::deadline::Alarm;

/// Pieces of so many bytes together are written as one: to copy them costs less than to have the system gather them.
const SHORT: usize = 1024;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Its first byte.
    First,
    /// The rest of a head.
    Head,
    /// The next request.
    Idle,
    /// Its answer: the call has deadlines of its own.
    Busy,
    /// A client that takes nothing.
    Stalled,
}

/// State shared by the stream, the service and the watchdog of one connection. One task touches it; the atomics are
/// only there because tasks are `Send`.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    read: AtomicBool,
    busy: AtomicBool,
    stalled: AtomicBool,
    garbled: AtomicBool,
    /// Counts requests and writes: a change is progress.
    steps: AtomicU32,
}

impl Pulse {
    pub(super) fn wait(&self) -> Wait {
        if self.stalled.load(Relaxed) {
            Wait::Stalled
        } else if self.busy.load(Relaxed) {
            Wait::Busy
        } else if self.read.load(Relaxed) {
            Wait::Head
        } else if self.steps.load(Relaxed) == 0 {
            Wait::First
        } else {
            Wait::Idle
        }
    }

    /// Whether what came was no TLS of this connection.
    pub(super) fn is_garbled(&self) -> bool {
        self.garbled.load(Relaxed)
    }

    fn step(&self) {
        self.steps
            .store(self.steps.load(Relaxed).wrapping_add(1).max(1), Relaxed);
    }
}

/// A request between its head and the last byte of its answer.
#[derive(Debug)]
pub(super) struct Request(Arc<Pulse>);

impl Request {
    pub(super) fn begin(pulse: &Arc<Pulse>) -> Self {
        pulse.read.store(false, Relaxed);
        pulse.busy.store(true, Relaxed);
        pulse.step();
        Self(pulse.clone())
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.0.busy.store(false, Relaxed);
    }
}

/// A stream whose bytes are noticed.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    pulse: Arc<Pulse>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, pulse: Arc<Pulse>) -> Self {
        Self { stream, pulse }
    }

    fn wrote(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.pulse.stalled.store(result.is_pending(), Relaxed);
        if result.is_ready() {
            self.pulse.step();
        }
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, into);
        if into.filled().len() > before && !self.pulse.busy.load(Relaxed) {
            self.pulse.read.store(true, Relaxed);
        }
        if let Poll::Ready(Err(error)) = &result
            && error.kind() == io::ErrorKind::InvalidData
        {
            self.pulse.garbled.store(true, Relaxed);
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length: usize = slices.iter().map(|slice| slice.len()).sum();
        if length > SHORT {
            let result = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
            return self.wrote(result);
        }
        let (mut joined, mut at) = ([0; SHORT], 0);
        for slice in slices {
            joined[at..][..slice.len()].copy_from_slice(slice);
            at += slice.len();
        }
        self.poll_write(cx, &joined[..at])
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Ends a wait that lasts too long.
pub(super) struct Watchdog {
    limits: Limits,
    state: (Wait, u32),
    alarm: Alarm,
}

impl Watchdog {
    pub(super) fn new(limits: Limits) -> Self {
        let mut alarm = Alarm::default();
        alarm.set(Some(Instant::now() + limits.head));
        Self {
            limits,
            state: (Wait::First, 0),
            alarm,
        }
    }

    /// Ready with what was waited for too long.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, pulse: &Pulse) -> Poll<Wait> {
        let state = (pulse.wait(), pulse.steps.load(Relaxed));
        if state != self.state {
            // A head that trickles is one wait, whatever was written meanwhile.
            if state.0 != Wait::Head || self.state.0 != Wait::Head {
                let limit = self.limit(state.0);
                self.alarm.set(limit.map(|limit| Instant::now() + limit));
            }
            self.state = state;
        }
        self.alarm.poll(cx).map(|()| self.state.0)
    }

    fn limit(&self, wait: Wait) -> Option<std::time::Duration> {
        match wait {
            Wait::First | Wait::Head => Some(self.limits.head),
            Wait::Idle => Some(self.limits.idle),
            Wait::Stalled => Some(self.limits.stall),
            Wait::Busy => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn pieces_arrive_in_their_order_however_long_they_are() {
        for body in [0, 1, SHORT - 6, SHORT - 5, 4 * SHORT] {
            let (near, mut far) = duplex(8 * SHORT);
            let mut watched = Watched::new(near, Arc::default());
            let body = vec![b'x'; body];
            let pieces = [b"hea", b"d: ".as_slice(), &body].map(IoSlice::new);
            let wrote = watched.write_vectored(&pieces).await.expect("room");
            assert!(wrote > 0);
            drop(watched);
            let mut came = Vec::new();
            far.read_to_end(&mut came).await.expect("an end");
            let whole = [b"head: ".as_slice(), &body].concat();
            assert_eq!(came, whole[..wrote]);
        }
    }
}
