//! The body of an answer, read by whoever asked for it, under its caps.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};

use super::{
    Egress, Error, Fault,
    decode::{DecodeError, Decoder},
    exchange::Live,
    pool::Key,
};
use crate::{
    deadline::Deadline,
    memory::{Full, Reservation},
};

/// The longest silence of an open-ended stream; its deadline comes first.
const OPEN: Duration = Duration::from_secs(24 * 60 * 60);

/// A body and the connection it comes from. Dropped before its end, it closes the connection.
pub struct Body {
    egress: Egress,
    /// `None` once the body is over.
    live: Option<Box<Live>>,
    home: Option<Home>,
    decoder: Option<Decoder>,
    bounds: Bounds,
    /// Bytes off the wire, and bytes after decoding.
    read: (usize, usize),
    held: Reservation,
    waiting: bool,
}

/// Where the connection goes once the body has ended.
pub(super) struct Home {
    pub(super) key: Key,
    pub(super) keep: Duration,
}

/// What holds the body back.
pub(super) struct Bounds {
    pub(super) host: Arc<str>,
    pub(super) bytes: usize,
    pub(super) idle: Duration,
    pub(super) deadline: Deadline,
}

impl Body {
    pub(super) fn new(
        egress: Egress,
        live: Box<Live>,
        home: Home,
        decoder: Option<Decoder>,
        bounds: Bounds,
    ) -> Box<Self> {
        let mut body = Box::new(Self {
            egress,
            live: Some(live),
            home: Some(home),
            decoder,
            bounds,
            read: (0, 0),
            held: Reservation::default(),
            waiting: false,
        });
        // Of a body that is known to be empty, nothing needs to be read.
        if body.live.as_ref().is_some_and(|live| live.is_ended()) {
            body.end();
        }
        body
    }

    /// Everything that is ready now as one piece, else the next that comes; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`Error::IdleTimeout`], [`Error::CallTimeout`], [`Error::TooLarge`], [`Error::Undecodable`], [`Error::Lost`];
    /// after any of them the body is over.
    pub async fn next_ready(&mut self) -> Result<Option<Bytes>, Error> {
        poll_fn(|context| self.poll_ready(context)).await
    }

    /// The whole body, of at most `cap` bytes or the server's own cap, whichever is lower.
    ///
    /// # Errors
    ///
    /// As [`Body::next_ready`], and [`Error::Overloaded`].
    pub async fn collect(mut self: Box<Self>, cap: usize) -> Result<Bytes, Error> {
        self.bounds.bytes = self.bounds.bytes.min(cap);
        let Some(first) = self.next_ready().await? else {
            return Ok(Bytes::new());
        };
        self.hold(first.len())?;
        let Some(second) = self.next_ready().await? else {
            return Ok(self.held.attach(first));
        };
        self.hold(second.len())?;
        let mut whole = BytesMut::from(first);
        whole.extend_from_slice(&second);
        while let Some(more) = self.next_ready().await? {
            self.hold(more.len())?;
            whole.extend_from_slice(&more);
        }
        Ok(self.held.attach(whole.freeze()))
    }

    /// Counts `bytes` more that its reader keeps of it, until the body is dropped or they are released.
    ///
    /// # Errors
    ///
    /// [`Error::Overloaded`] where all answers together hold as much as they may.
    pub fn hold(&mut self, bytes: usize) -> Result<(), Error> {
        let held = self.held.grow(bytes, &self.egress.0.memory);
        held.map_err(|Full| Error::Overloaded {
            host: self.bounds.host.clone(),
        })
    }

    /// Says that its reader keeps no more than `bytes` of it.
    pub fn release_to(&mut self, bytes: usize) {
        drop(self.held.split_off(bytes));
    }

    /// The same as a stream that no single call owns: neither its length nor a silence ends it, only the deadline.
    /// Its reader bounds what it keeps.
    #[must_use]
    pub fn open_ended(mut self: Box<Self>) -> Box<Self> {
        self.bounds.bytes = usize::MAX;
        self.bounds.idle = OPEN;
        self
    }

    /// The same bytes, which take along what its reader holds of it beyond `kept` bytes: for what was made of it and goes on.
    pub fn attach(&mut self, bytes: Bytes, kept: usize) -> Bytes {
        self.held.split_off(kept).attach(bytes)
    }

    /// Whether everything was read.
    pub fn is_ended(&self) -> bool {
        self.live.is_none()
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        let result = ready!(self.poll_piece(context));
        self.waiting = false;
        if result.is_err() {
            self.live = None;
        }
        Poll::Ready(result)
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        while let Some(live) = &mut self.live {
            let Poll::Ready(read) = live.poll_data(context) else {
                ready!(self.poll_late(context));
                return Poll::Ready(Err(self.late()));
            };
            let is_last = live.is_ended();
            let read = read.map_err(|source| self.lost(source))?;
            let mut piece = read.map_or(Ok(Bytes::new()), |data| self.accept(data))?;
            if is_last {
                piece = self.finish(piece)?;
            }
            if !piece.is_empty() {
                return Poll::Ready(Ok(Some(piece)));
            }
        }
        Poll::Ready(Ok(None))
    }

    /// The last piece, with what the decoder still holds behind it; the body ends.
    fn finish(&mut self, piece: Bytes) -> Result<Bytes, Error> {
        let mut piece = piece;
        // An answer without a body may still name a coding (RFC 9110, section 8.4).
        if let Some(decoder) = &mut self.decoder
            && self.read.0 > 0
        {
            let rest = decoder.finish();
            let rest = self.decoded(rest)?;
            piece = [piece, rest].concat().into();
        }
        self.end();
        Ok(piece)
    }

    fn accept(&mut self, data: Bytes) -> Result<Bytes, Error> {
        self.read.0 += data.len();
        if self.read.0 > self.bounds.bytes {
            return Err(self.too_large());
        }
        match &mut self.decoder {
            None => Ok(data),
            Some(decoder) => {
                let result = decoder.push(&data);
                self.decoded(result)
            }
        }
    }

    fn decoded(&mut self, result: Result<Vec<u8>, DecodeError>) -> Result<Bytes, Error> {
        match result {
            Ok(data) => {
                self.read.1 += data.len();
                if self.read.1 > self.bounds.bytes {
                    return Err(self.too_large());
                }
                Ok(data.into())
            }
            Err(DecodeError::TooLarge) => Err(self.too_large()),
            Err(DecodeError::Bad(source)) => Err(Error::Undecodable {
                host: self.bounds.host.clone(),
                coding: self.decoder.as_ref().map_or("identity", Decoder::name),
                source,
            }),
        }
    }

    /// The body is complete: its connection goes back if it can serve again.
    fn end(&mut self) {
        let live = self.live.take().and_then(Live::rest);
        if let (Some(live), Some(home)) = (live, self.home.take()) {
            self.egress.0.pool.park(home.key, live, home.keep);
        }
    }

    /// Ready once the wait for more has lasted too long.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(live) = &mut self.live else {
            return Poll::Ready(());
        };
        if !std::mem::replace(&mut self.waiting, true) {
            live.give_until(self.bounds.deadline.phase(self.bounds.idle));
        }
        live.poll_late(context)
    }

    fn late(&self) -> Error {
        let host = self.bounds.host.clone();
        if self.bounds.deadline.passed() {
            Error::CallTimeout { host }
        } else {
            Error::IdleTimeout {
                host,
                limit: self.bounds.idle,
            }
        }
    }

    fn lost(&self, source: Fault) -> Error {
        let host = self.bounds.host.clone();
        Error::Lost { host, source }
    }

    fn too_large(&self) -> Error {
        Error::TooLarge {
            host: self.bounds.host.clone(),
            limit: self.bounds.bytes,
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Body")
            .field("host", &self.bounds.host)
            .field("read", &self.read)
            .field("ended", &self.is_ended())
            .finish_non_exhaustive()
    }
}
