//! One HTTP/1.1 connection that belongs to nobody but the request it carries: whoever waits for the answer reads it.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::{Method, StatusCode};
use tokio::{
    io::{AsyncRead as _, AsyncWrite as _, ReadBuf},
    task::coop::unconstrained,
    time::Instant,
};
use tokio_util::io::poll_read_buf;

use super::{
    Io,
    http1::{Fault, Fields, Framing, Heads},
};
use crate::deadline::Alarm;

/// Room for a head and a small body.
const ROOM: usize = 8 * 1024;
/// Room that is enough to read on.
const LEAST: usize = 2 * 1024;
/// The most bytes that are read before they are passed on.
const MAX_READ: usize = 256 * 1024;

/// A connection.
pub(super) struct Live {
    alarm: Alarm,
    io: Box<dyn Io>,
    /// What was read and not taken.
    input: BytesMut,
    /// Room for the next read: a peer that fills it gets more.
    room: usize,
    /// What was not written yet of the request. A server may answer before it has read all of it.
    wire: Option<Wire>,
    /// What broke the connection. What came before that is read first.
    broken: Option<io::Error>,
    /// Where the body ends that is being read.
    framing: Framing,
    /// Whether another exchange may follow.
    persists: bool,
}

/// A request as it goes over the wire.
pub(super) struct Wire {
    /// Its method, which decides where the response ends.
    pub(super) method: Method,
    /// The head, and a small body with it.
    pub(super) head: Bytes,
    /// The rest.
    pub(super) body: Bytes,
}

impl Wire {
    fn unsent(&mut self) -> Option<&mut Bytes> {
        let mut parts = [&mut self.head, &mut self.body].into_iter();
        parts.find(|part| !part.is_empty())
    }
}

/// A request of which no byte was written. To hold this is the only way to send a request again.
pub(super) struct NotSent {
    wire: Wire,
    source: Fault,
}

impl NotSent {
    /// The request, for another connection.
    pub(super) fn into_wire(self) -> Wire {
        self.wire
    }

    /// What ended the connection, where there is no other.
    pub(super) fn into_source(self) -> Fault {
        self.source
    }
}

/// An exchange without a response.
pub(super) enum Broken {
    /// Nothing was sent.
    NotSent(NotSent),
    /// The request was begun; what the peer saw of it is not known.
    Lost(Fault),
    /// The time ran out.
    Late,
}

impl Live {
    /// Wraps a fresh stream.
    pub(super) fn new(io: Box<dyn Io>) -> Box<Self> {
        Box::new(Self {
            alarm: Alarm::default(),
            io,
            input: BytesMut::new(),
            room: ROOM,
            wire: None,
            broken: None,
            framing: Framing::Length(0),
            persists: true,
        })
    }

    /// Sets the end of what is waited for next, once nothing else is ready.
    pub(super) fn give_until(&mut self, end: Instant) {
        self.alarm.set(Some(end));
    }

    /// Ready once that end has come.
    pub(super) fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.alarm.poll(context)
    }

    /// How many bytes of the body are left, as far as its head tells.
    pub(super) fn announced(&self) -> usize {
        match self.framing {
            Framing::Length(_) => self.framing.left(),
            Framing::Chunked(_) | Framing::Close => 0,
        }
    }

    /// Whether the whole body was taken.
    pub(super) fn is_ended(&self) -> bool {
        self.framing.is_ended()
    }

    /// The same, kept for another exchange; `None` where none may follow.
    pub(super) fn rest(mut self: Box<Self>) -> Option<Box<Self>> {
        let whole = self.is_ended() && self.wire.is_none() && self.broken.is_none();
        let rests = whole && self.persists && self.input.is_empty();
        self.give_back_room();
        rests.then_some(self)
    }

    /// The stream, and what it brought that nobody has taken.
    pub(super) fn into_stream(self) -> (Box<dyn Io>, Bytes) {
        (self.io, self.input.freeze())
    }

    /// Sends a request and waits until `until` for the head of the response.
    pub(super) async fn exchange(
        mut self: Box<Self>,
        wire: Wire,
        until: Instant,
    ) -> Result<(Box<Self>, StatusCode, Fields), Broken> {
        let method = wire.method.clone();
        self.begin(wire).map_err(Broken::NotSent)?;
        self.alarm.set(Some(until));
        let mut heads = Heads::default();
        let result = poll_fn(
            |context| match self.poll_head(&method, &mut heads, context) {
                Poll::Ready(result) => Poll::Ready(Some(result)),
                Poll::Pending => self.alarm.poll(context).map(|()| None),
            },
        );
        match result.await {
            Some(Ok((status, headers))) => Ok((self, status, headers)),
            Some(Err(fault)) => Err(Broken::Lost(fault)),
            None => Err(Broken::Late),
        }
    }

    /// Takes a request to write, unless the connection has ended meanwhile.
    pub(super) fn begin(&mut self, wire: Wire) -> Result<(), NotSent> {
        if let Some(source) = self.spoiled() {
            return Err(NotSent { wire, source });
        }
        self.give(wire);
        Ok(())
    }

    /// Whether all of the request that it was given is written, and more may follow.
    pub(super) fn takes(&self) -> bool {
        self.wire.is_none() && self.broken.is_none()
    }

    /// Takes more of a request to write, once it [takes](Live::takes) it.
    pub(super) fn give(&mut self, more: Wire) {
        self.wire = Some(more);
    }

    /// Where the body of the response ends.
    pub(super) fn framing(&self) -> &Framing {
        &self.framing
    }

    /// What of the body is ready now, as one piece of at most [`MAX_READ`] bytes; `None` at its end.
    ///
    /// # Errors
    ///
    /// What came before the connection broke is returned before that.
    pub(super) fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Fault>> {
        self.write(context);
        while !self.is_ended() {
            let came = self.fill(context);
            let data = self.framing.take(&mut self.input)?;
            if !data.is_empty() {
                return Poll::Ready(Ok(Some(data)));
            }
            match came {
                // The end may have come with nothing before it.
                _ if self.is_ended() => {}
                Came::Something => {}
                Came::End => {
                    if let Some(error) = self.broken.take() {
                        return Poll::Ready(Err(error.into()));
                    }
                    if !matches!(self.framing, Framing::Close) {
                        return Poll::Ready(Err(Fault::Cut));
                    }
                    self.framing = Framing::Length(0);
                }
                Came::Nothing => {
                    self.give_back_room();
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(None))
    }

    /// What a connection that rests must not have: an end, or bytes that nobody asked for.
    fn spoiled(&mut self) -> Option<Fault> {
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        let io = &mut self.io;
        let read = poll_fn(|context| Pin::new(&mut *io).poll_read(context, &mut buffer));
        // It is only looked at: a spent budget must not pass for silence.
        match unconstrained(read).now_or_never()? {
            Ok(()) if buffer.filled().is_empty() => Some(Fault::Closed),
            Ok(()) => Some(Fault::Unasked),
            Err(error) => Some(error.into()),
        }
    }

    /// The next head of a response to a `method` request.
    pub(super) fn poll_head(
        &mut self,
        method: &Method,
        heads: &mut Heads,
        context: &mut Context<'_>,
    ) -> Poll<Result<(StatusCode, Fields), Fault>> {
        self.write(context);
        loop {
            // What came is taken before more is read, or interim heads would pile up behind the one that is asked for.
            if let Some(head) = heads.next(method, &mut self.input)? {
                self.persists = head.persists;
                self.framing = head.framing;
                return Poll::Ready(Ok((head.status, head.headers)));
            }
            let fault = match self.read(LEAST, self.room, context) {
                Came::Something => continue,
                // Where the request could not be written, an answer may still be on its way, or the end.
                Came::Nothing => return Poll::Pending,
                Came::End => match self.broken.take() {
                    Some(error) => error.into(),
                    None if self.input.is_empty() => Fault::Closed,
                    None => Fault::Cut,
                },
            };
            return Poll::Ready(Err(fault));
        }
    }

    /// Writes what is left of the request, as far as it goes.
    pub(super) fn write(&mut self, context: &mut Context<'_>) {
        let Some(wire) = &mut self.wire else {
            return;
        };
        match poll_write(&mut self.io, wire, context) {
            Poll::Pending => return,
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => self.broken = Some(error),
        }
        self.wire = None;
    }

    /// Reads what is ready, as far as the body goes.
    fn fill(&mut self, context: &mut Context<'_>) -> Came {
        loop {
            let wanted = self.framing.left().min(MAX_READ);
            let missing = wanted.saturating_sub(self.input.len());
            if missing == 0 {
                return Came::Something;
            }
            // What has a known length is gathered in one place, once its peer has shown that it comes.
            let (least, room) = match self.framing {
                Framing::Length(_) if self.room > ROOM => (missing, missing),
                _ => (LEAST.min(missing), self.room.min(missing)),
            };
            match self.read(least, room, context) {
                Came::Something => {}
                other => return other,
            }
        }
    }

    /// One read, into `room` bytes where there is no room for the `least` any more.
    fn read(&mut self, least: usize, room: usize, context: &mut Context<'_>) -> Came {
        if self.input.capacity() - self.input.len() < least {
            self.input.reserve(room);
        }
        let space = self.input.capacity() - self.input.len();
        match poll_read_buf(Pin::new(&mut self.io), context, &mut self.input) {
            Poll::Pending => Came::Nothing,
            Poll::Ready(Ok(0)) => Came::End,
            Poll::Ready(Ok(read)) => {
                if read == space {
                    self.room = (2 * self.room).min(MAX_READ);
                }
                Came::Something
            }
            Poll::Ready(Err(error)) => {
                // Some connections tell it once, and then seem to have ended.
                self.broken.get_or_insert(error);
                Came::End
            }
        }
    }

    /// Streams that are silent, and connections that rest, hold no room.
    fn give_back_room(&mut self) {
        if self.input.is_empty() {
            self.input = BytesMut::new();
            self.room = ROOM;
        }
    }
}

/// What a read brought.
enum Came {
    Something,
    /// Nothing yet.
    Nothing,
    /// The end, or what broke it.
    End,
}

fn poll_write(
    io: &mut Box<dyn Io>,
    wire: &mut Wire,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while let Some(part) = wire.unsent() {
        let written = ready!(Pin::new(&mut *io).poll_write(context, part))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        part.advance(written);
    }
    Pin::new(io).poll_flush(context)
}

#[cfg(test)]
mod tests;
