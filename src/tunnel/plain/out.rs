//! What is still to be written to the client.

use std::{
    fmt::Write as _,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::AsyncWrite;

/// Pieces up to so many bytes are gathered with what stands before them.
const SMALL: usize = 16 * 1024;
/// Room for a head and a small body.
const ROOM: usize = 2 * 1024;

/// Bytes on their way to the client: small ones in one place, a large piece as it came.
pub(super) struct Out {
    front: BytesMut,
    piece: Bytes,
    /// What ends the piece.
    end: &'static [u8],
}

impl Out {
    pub(super) fn new() -> Self {
        Self {
            front: BytesMut::with_capacity(ROOM),
            piece: Bytes::new(),
            end: b"",
        }
    }

    /// Where a head is written.
    pub(super) fn front(&mut self) -> &mut BytesMut {
        &mut self.front
    }

    /// Whether everything was written.
    pub(super) fn is_empty(&self) -> bool {
        self.front.is_empty() && self.piece.is_empty() && self.end.is_empty()
    }

    /// Whether it takes another piece.
    pub(super) fn takes(&self) -> bool {
        self.front.len() < SMALL && self.piece.is_empty() && self.end.is_empty()
    }

    /// Takes a piece of the body, once it [takes](Self::takes) one; in chunks (RFC 9112, section 7.1), no empty one.
    pub(super) fn push(&mut self, piece: Bytes, chunked: bool) {
        if chunked {
            write!(self.front, "{:x}\r\n", piece.len())
                .expect("a buffer takes all that is written to it");
        }
        let end: &[u8] = if chunked { b"\r\n" } else { b"" };
        if piece.len() <= SMALL {
            self.front.extend_from_slice(&piece);
            self.front.extend_from_slice(end);
        } else {
            self.piece = piece;
            self.end = end;
        }
    }

    /// Takes the last chunk, right behind a piece or when it takes one.
    pub(super) fn push_last_chunk(&mut self) {
        if self.piece.is_empty() {
            self.front.extend_from_slice(b"0\r\n\r\n");
        } else {
            self.end = b"\r\n0\r\n\r\n";
        }
    }

    /// Writes what it can; how many bytes, of which there is at least one.
    pub(super) fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        io: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let io = Pin::new(io);
        let written = if self.piece.is_empty() && self.end.is_empty() {
            ready!(io.poll_write(context, &self.front))?
        } else {
            let parts = [&self.front[..], &self.piece, self.end].map(IoSlice::new);
            ready!(io.poll_write_vectored(context, &parts))?
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.advance(written);
        Poll::Ready(Ok(written))
    }

    fn advance(&mut self, written: usize) {
        let front = written.min(self.front.len());
        self.front.advance(front);
        let piece = (written - front).min(self.piece.len());
        self.piece.advance(piece);
        self.end = &self.end[written - front - piece..];
    }
}
