//! The body of an answer, read by whoever asked for it, under its caps.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;

use super::{
    Egress, Error,
    decode::{DecodeError, Decoder},
    exchange::Live,
    pool::Key,
};
use crate::{
    deadline::Deadline,
    memory::{Full, Reservation},
};

/// The most bytes gathered into one piece.
const MAX_BATCH: usize = 256 * 1024;
/// Room for what comes behind the first of several pieces.
const JOINED: usize = 4 * 1024;
/// The longest silence of an open-ended stream; its deadline comes first.
const OPEN: Duration = Duration::from_secs(24 * 60 * 60);

/// A body and the connection it comes from. Dropped before its end, it closes the connection.
pub struct Body {
    egress: Egress,
    incoming: Incoming,
    live: Option<Box<Live>>,
    home: Option<Home>,
    decoder: Option<Decoder>,
    bounds: Bounds,
    /// Bytes off the wire, and bytes after decoding.
    read: (usize, usize),
    held: Reservation,
    waiting: bool,
    state: State,
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

enum State {
    Open,
    Ended,
    /// Data came first; the error is next.
    Failed(Error),
}

impl Body {
    pub(super) fn new(
        egress: Egress,
        incoming: Incoming,
        live: Box<Live>,
        home: Home,
        decoder: Option<Decoder>,
        bounds: Bounds,
    ) -> Box<Self> {
        Box::new(Self {
            egress,
            incoming,
            live: Some(live),
            home: Some(home),
            decoder,
            bounds,
            read: (0, 0),
            held: Reservation::default(),
            waiting: false,
            state: State::Open,
        })
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
        matches!(self.state, State::Ended)
    }

    /// Ends a body that is known to be empty, so that its connection can serve again.
    pub(super) fn settle(&mut self) {
        if self.incoming.is_end_stream() {
            self.end();
        }
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Ended => return Poll::Ready(Ok(None)),
            State::Failed(error) => return Poll::Ready(Err(error)),
            State::Open => self.state = State::Open,
        }
        let mut batch = Batch::default();
        if let Err(error) = self.gather(&mut batch, context) {
            self.live = None;
            if batch.len() == 0 {
                self.state = State::Ended;
                return Poll::Ready(Err(error));
            }
            self.state = State::Failed(error);
        }
        if batch.len() > 0 {
            self.waiting = false;
            return Poll::Ready(Ok(Some(batch.into_bytes())));
        }
        if self.is_ended() {
            return Poll::Ready(Ok(None));
        }
        ready!(self.poll_late(context));
        self.live = None;
        self.state = State::Ended;
        Poll::Ready(Err(self.late()))
    }

    /// Lets the body and the connection take turns until both wait, so that what is ready leaves together. Only the last
    /// turn asks to be woken: by then nothing is left to be had.
    fn gather(&mut self, batch: &mut Batch, context: &mut Context<'_>) -> Result<(), Error> {
        let mut turns = 0;
        while batch.len() < MAX_BATCH {
            match self.poll_incoming() {
                Poll::Pending if turns == 2 => return Ok(()),
                Poll::Pending => {
                    turns += 1;
                    self.turn((turns == 2).then_some(&mut *context));
                }
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.accept(data, batch)?;
                    }
                    if self.incoming.is_end_stream() {
                        return self.finish(batch);
                    }
                    // hyper hands over one frame at a time: to ask for another now would be in vain.
                    turns = 1;
                    self.turn(None);
                }
                Poll::Ready(Some(Err(source))) => {
                    let host = self.bounds.host.clone();
                    return Err(Error::Lost { host, source });
                }
                Poll::Ready(None) => return self.finish(batch),
            }
        }
        Ok(())
    }

    /// The next frame. The connection alone brings it, and it is polled by the one who asks here.
    fn poll_incoming(&mut self) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.incoming).poll_frame(&mut Context::from_waker(Waker::noop()))
    }

    fn turn(&mut self, context: Option<&mut Context<'_>>) {
        let goes_on = self.live.as_mut().is_some_and(|live| match context {
            Some(context) => live.turn(context),
            None => live.nudge(),
        });
        if !goes_on {
            self.live = None;
        }
    }

    /// Takes what the decoder still holds, and ends.
    fn finish(&mut self, batch: &mut Batch) -> Result<(), Error> {
        // An answer without a body may still name a coding (RFC 9110, section 8.4).
        if let Some(decoder) = &mut self.decoder
            && self.read.0 > 0
        {
            let result = decoder.finish();
            self.decoded(result, batch)?;
        }
        self.end();
        Ok(())
    }

    fn accept(&mut self, data: Bytes, batch: &mut Batch) -> Result<(), Error> {
        self.read.0 += data.len();
        if self.read.0 > self.bounds.bytes {
            return Err(self.too_large());
        }
        match &mut self.decoder {
            None => {
                batch.push(data);
                Ok(())
            }
            Some(decoder) => {
                let result = decoder.push(&data);
                self.decoded(result, batch)
            }
        }
    }

    fn decoded(
        &mut self,
        result: Result<Vec<u8>, DecodeError>,
        batch: &mut Batch,
    ) -> Result<(), Error> {
        match result {
            Ok(data) => {
                self.read.1 += data.len();
                if self.read.1 > self.bounds.bytes {
                    return Err(self.too_large());
                }
                batch.push(data.into());
                Ok(())
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
        self.state = State::Ended;
        if let (Some(mut live), Some(home)) = (self.live.take(), self.home.take())
            && (live.is_idle() || live.reusable())
        {
            self.egress.0.pool.park(home.key, live, home.keep);
        }
    }

    /// Ready once the wait for more has lasted too long. Without a connection, nothing is waited for.
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

/// Pieces that leave together; a single one is not copied.
#[derive(Default)]
struct Batch {
    first: Bytes,
    joined: BytesMut,
}

impl Batch {
    fn push(&mut self, data: Bytes) {
        if self.len() == 0 {
            self.first = data;
            return;
        }
        if self.joined.is_empty() {
            self.joined
                .reserve(self.first.len() + data.len().max(JOINED));
            self.joined.extend_from_slice(&self.first);
        }
        self.joined.extend_from_slice(&data);
    }

    fn len(&self) -> usize {
        self.first.len().max(self.joined.len())
    }

    fn into_bytes(self) -> Bytes {
        if self.joined.is_empty() {
            self.first
        } else {
            self.joined.freeze()
        }
    }
}
