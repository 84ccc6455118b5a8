//! One direction of a tunnel.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::Instant,
};

use crate::tunnel::client::poll_scratch;

/// A side of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    From,
    To,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// No more will come; the other side is to be told.
    Ended,
    /// It was told.
    Over,
}

/// Bytes on their way from one side to the other.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// What was read and is not taken; nothing is read while there is any.
    held: BytesMut,
    /// Bytes that were taken.
    pub(super) moved: u64,
    /// Since when the other side takes nothing.
    pub(super) blocked: Option<Instant>,
    unflushed: bool,
    /// Whether the other side takes nothing more: what still comes for it is dropped.
    lost: bool,
    /// Whether reading failed, which is an end, too.
    broken: bool,
    stage: Stage,
}

impl Way {
    /// A way on which `held` goes first.
    pub(super) fn new(held: BytesMut) -> Self {
        Self {
            held,
            ..Self::default()
        }
    }

    /// Whether no more will come.
    pub(super) fn has_ended(&self) -> bool {
        self.stage != Stage::Open && !self.lost
    }

    /// Whether no more will come, since the side that sent is gone.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether the other side takes nothing more.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// The other side takes nothing more. What still comes is read and dropped: a close with bytes unread would take from
    /// its sender what the way back has brought, and he has not read.
    pub(super) fn lose(&mut self) {
        (self.lost, self.unflushed) = (true, false);
        self.held = BytesMut::new();
    }

    /// Whether both sides know that.
    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Moves bytes until a side has to be waited for.
    pub(super) fn poll<F, T>(&mut self, cx: &mut Context<'_>, from: &mut F, to: &mut T)
    where
        F: AsyncRead + Unpin,
        T: AsyncWrite + Unpin,
    {
        let before = self.moved;
        match self.step(cx, from, to) {
            Side::From => self.blocked = None,
            Side::To if self.moved > before || self.blocked.is_none() => {
                self.blocked = Some(Instant::now());
            }
            Side::To => {}
        }
    }

    /// The same; says which side is waited for.
    fn step<F, T>(&mut self, cx: &mut Context<'_>, from: &mut F, to: &mut T) -> Side
    where
        F: AsyncRead + Unpin,
        T: AsyncWrite + Unpin,
    {
        loop {
            if !self.held.is_empty() {
                let Ok(taken) = write(to, cx, &self.held) else {
                    self.lose();
                    continue;
                };
                self.took(taken);
                let _taken = self.held.split_to(taken);
                if !self.held.is_empty() {
                    return Side::To;
                }
                self.held = BytesMut::new();
            }
            match self.stage {
                Stage::Open => {}
                Stage::Over => return Side::From,
                Stage::Ended => match Pin::new(&mut *to).poll_shutdown(cx) {
                    Poll::Pending => return Side::To,
                    // One that is gone needs not be told.
                    Poll::Ready(_) => {
                        self.stage = Stage::Over;
                        return Side::From;
                    }
                },
            }
            let read = poll_scratch(from, cx, |cx, bytes| {
                if self.lost {
                    return bytes.len();
                }
                match write(to, cx, bytes) {
                    Ok(taken) => {
                        self.took(taken);
                        self.held.extend_from_slice(&bytes[taken..]);
                    }
                    Err(_) => self.lose(),
                }
                bytes.len()
            });
            match read {
                Poll::Ready(Ok(0)) if self.lost => self.stage = Stage::Over,
                Poll::Ready(Ok(0)) => self.stage = Stage::Ended,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(_)) => (self.broken, self.stage) = (true, Stage::Ended),
                Poll::Pending => return self.flush(cx, to),
            }
        }
    }

    fn took(&mut self, bytes: usize) {
        self.moved += bytes as u64;
        self.unflushed |= bytes > 0;
    }

    /// TLS may hold back what it has taken.
    fn flush<T: AsyncWrite + Unpin>(&mut self, cx: &mut Context<'_>, to: &mut T) -> Side {
        if !self.unflushed {
            return Side::From;
        }
        match Pin::new(to).poll_flush(cx) {
            Poll::Pending => return Side::To,
            Poll::Ready(Ok(())) => self.unflushed = false,
            Poll::Ready(Err(_)) => self.lose(),
        }
        Side::From
    }
}

/// Writes as much as is taken now.
fn write<T: AsyncWrite + Unpin>(
    to: &mut T,
    cx: &mut Context<'_>,
    bytes: &[u8],
) -> io::Result<usize> {
    let mut taken = 0;
    while taken < bytes.len() {
        match Pin::new(&mut *to).poll_write(cx, &bytes[taken..]) {
            Poll::Pending => break,
            Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
            Poll::Ready(Ok(more)) => taken += more,
            Poll::Ready(Err(error)) => return Err(error),
        }
    }
    Ok(taken)
}
