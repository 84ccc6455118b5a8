//! The body of an answer, read by whoever asked for it, under its caps.

use std::{
    future::{Future as _, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep_until};

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
    timer: Option<Pin<Box<Sleep>>>,
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
    ) -> Self {
        Self {
            egress,
            incoming,
            live: Some(live),
            home: Some(home),
            decoder,
            bounds,
            read: (0, 0),
            held: Reservation::default(),
            timer: None,
            waiting: false,
            state: State::Open,
        }
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
    pub async fn collect(mut self, cap: usize) -> Result<Bytes, Error> {
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
    pub fn open_ended(mut self) -> Self {
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
    pub(super) fn settle(&mut self, context: &mut Context<'_>) {
        if self.incoming.is_end_stream() {
            self.end(context);
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
        ready!(self.poll_timer(context));
        self.live = None;
        self.state = State::Ended;
        Poll::Ready(Err(self.late()))
    }

    /// Lets the connection and the body take turns until both wait, so that what is ready leaves together.
    fn gather(&mut self, batch: &mut Batch, context: &mut Context<'_>) -> Result<(), Error> {
        while batch.len() < MAX_BATCH {
            if let Some(live) = &mut self.live
                && !live.turn(context)
            {
                self.live = None;
            }
            match Pin::new(&mut self.incoming).poll_frame(context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.accept(data, batch)?;
                    }
                    if !self.incoming.is_end_stream() {
                        continue;
                    }
                }
                Poll::Ready(Some(Err(source))) => {
                    let host = self.bounds.host.clone();
                    return Err(Error::Lost { host, source });
                }
                Poll::Ready(None) => {}
            }
            // An answer without a body may still name a coding (RFC 9110, section 8.4).
            if let Some(decoder) = &mut self.decoder
                && self.read.0 > 0
            {
                let result = decoder.finish();
                self.decoded(result, batch)?;
            }
            self.end(context);
            return Ok(());
        }
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
    fn end(&mut self, context: &mut Context<'_>) {
        self.state = State::Ended;
        self.timer = None;
        if let (Some(mut live), Some(home)) = (self.live.take(), self.home.take())
            && live.reusable(context)
        {
            self.egress.0.pool.park(home.key, live, home.keep);
        }
    }

    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(self.bounds.deadline.instant())));
        if !self.waiting {
            self.waiting = true;
            timer
                .as_mut()
                .reset(self.bounds.deadline.phase(self.bounds.idle));
        }
        timer.as_mut().poll(context)
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
            self.joined.reserve(self.first.len() + data.len().max(1024));
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
