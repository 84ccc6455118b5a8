//! What moves the bytes of one exchange, both ways at once, for as long as any side has some.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use http::{Method, StatusCode};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};
use tokio_util::io::poll_read_buf;

use super::{
    Bounds, Forwarded, Next, PlainError, Source, expects,
    out::Out,
    response::{self, Shape},
};
use crate::{
    egress::{self, Error, Forward, Incoming},
    tunnel::Head,
};

/// Room for the next piece of a request's body.
const ROOM: usize = 16 * 1024;
/// How much of the next request is read before its turn.
const AHEAD: usize = 512;

/// One exchange.
pub(super) struct Pump<'a, S> {
    head: &'a Head,
    client: Source<'a, S>,
    /// What is left of the request's body.
    body: Incoming,
    exchange: Forward,
    out: Out,
    phase: Phase,
    status: Option<StatusCode>,
    /// Whether the client was told that its connection is closed.
    closes: bool,
    bounds: Bounds,
    /// Whether the client waits for 100.
    expects: bool,
    /// Whether the client has closed its side.
    closed: bool,
    /// Whether the client's stream may hold back what it has taken, as TLS does.
    unflushed: bool,
    /// Whether the next poll has to set the end of the wait anew.
    moved: bool,
    pub(super) sent: u64,
    received: u64,
}

/// How far the answer is.
enum Phase {
    /// Its head has not come.
    Head,
    /// Its body comes, and goes on in chunks or as it is.
    Body { chunked: bool },
    /// All of it was taken.
    Ended,
    /// It broke off behind what was taken of it.
    Broken(Option<PlainError>),
    /// It was 101.
    Upgraded,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Pump<'a, S> {
    pub(super) fn new(
        head: &'a Head,
        client: Source<'a, S>,
        body: Incoming,
        exchange: Forward,
        bounds: Bounds,
    ) -> Self {
        Self {
            head,
            client,
            body,
            exchange,
            out: Out::new(),
            phase: Phase::Head,
            status: None,
            closes: false,
            bounds,
            expects: expects(head),
            closed: false,
            unflushed: false,
            moved: true,
            sent: 0,
            received: 0,
        }
    }

    /// Moves everything, to the end or to what stops it.
    pub(super) async fn run(mut self) -> Forwarded {
        let result = poll_fn(|context| self.poll(context)).await;
        let keeps = self.body.is_ended() && !self.closed && self.head.persists;
        if self.status.is_none() && !self.out.is_empty() {
            // Part of a 100 stands on the wire: no answer can follow it.
            self.status = Some(StatusCode::CONTINUE);
        }
        let destination = Some(self.exchange.destination().clone());
        let address = Some(self.exchange.address());
        let next = match (&result, self.status) {
            (Ok(()), Some(StatusCode::SWITCHING_PROTOCOLS)) => {
                let (io, early) = self.exchange.into_stream();
                Next::Tunnel { io, early }
            }
            (Ok(()), _) => {
                self.exchange.finish();
                match keeps && !self.closes {
                    true => Next::Keep,
                    false => Next::Close,
                }
            }
            (Err(_), Some(_)) => Next::Cut,
            (Err(PlainError::Egress(_)), None) if keeps => Next::Keep,
            (Err(_), None) => Next::Close,
        };
        Forwarded {
            status: self.status,
            error: result.err(),
            next,
            destination,
            address,
            sent: self.sent,
            received: self.received,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), PlainError>> {
        loop {
            let request = self.move_request(context)?;
            let answer = self.move_answer(context)?;
            let written = self.write(context)?;
            if self.out.is_empty() {
                match &mut self.phase {
                    Phase::Broken(error) => return Poll::Ready(error.take().map_or(Ok(()), Err)),
                    Phase::Ended | Phase::Upgraded if !self.unflushed => {
                        return Poll::Ready(Ok(()));
                    }
                    _ => {}
                }
            }
            if !(request || answer || written) {
                return self.poll_late(context).map(Err);
            }
            self.moved = true;
        }
    }

    /// Moves the request's body towards the target; whether anything moved.
    fn move_request(&mut self, context: &mut Context<'_>) -> Result<bool, PlainError> {
        if self.body.is_ended() {
            self.exchange.poll_send(context);
            return self.watch(context);
        }
        let mut moved = false;
        loop {
            self.exchange.poll_send(context);
            if !self.exchange.takes() {
                return Ok(moved);
            }
            let piece = self
                .body
                .take(self.client.input)
                .map_err(PlainError::Body)?;
            let whole = self.body.is_ended();
            if !piece.is_empty() || whole {
                self.sent += piece.len() as u64;
                self.exchange.give(piece, whole);
                moved = true;
                if whole {
                    self.exchange.poll_send(context);
                    return Ok(moved);
                }
                continue;
            }
            let input = &mut *self.client.input;
            input.reserve(ROOM);
            match poll_read_buf(Pin::new(&mut *self.client.io), context, input) {
                Poll::Pending => return Ok(moved),
                Poll::Ready(Ok(0)) => return Err(PlainError::Closed),
                Poll::Ready(Ok(_)) => moved = true,
                Poll::Ready(Err(error)) => return Err(PlainError::Gone(error)),
            }
        }
    }

    /// Notices that a client has gone that waits for its answer. What it says meanwhile is the next request, or belongs to
    /// the WebSocket: both wait.
    fn watch(&mut self, context: &mut Context<'_>) -> Result<bool, PlainError> {
        if self.closed || !self.client.input.is_empty() || self.head.websocket {
            return Ok(false);
        }
        let mut ahead = [0; AHEAD];
        let mut buffer = ReadBuf::new(&mut ahead);
        match Pin::new(&mut *self.client.io).poll_read(context, &mut buffer) {
            Poll::Pending => {}
            Poll::Ready(Err(error)) => return Err(PlainError::Gone(error)),
            // It may still read what it asked for.
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => self.closed = true,
            Poll::Ready(Ok(())) => self.client.input.extend_from_slice(buffer.filled()),
        }
        Ok(false)
    }

    /// Takes what is there of the answer; whether anything moved.
    fn move_answer(&mut self, context: &mut Context<'_>) -> Result<bool, PlainError> {
        let mut moved = false;
        while let Phase::Head = self.phase {
            let Poll::Ready(head) = self.exchange.poll_head(context) else {
                return Ok(moved);
            };
            moved = true;
            self.accept(&head?);
        }
        while let Phase::Body { chunked } = self.phase {
            if self.exchange.is_ended() {
                if chunked {
                    self.out.push_last_chunk();
                }
                self.phase = Phase::Ended;
                return Ok(true);
            }
            if !self.out.takes() {
                return Ok(moved);
            }
            let Poll::Ready(data) = self.exchange.poll_data(context) else {
                return Ok(moved);
            };
            moved = true;
            match data {
                Ok(Some(data)) => self.out.push(data, chunked),
                Ok(None) => {}
                Err(error) => self.phase = Phase::Broken(Some(error.into())),
            }
        }
        Ok(moved)
    }

    /// Takes a head. Interim ones nobody has asked for are passed over: few clients of a proxy know what to do with one.
    fn accept(&mut self, head: &egress::Head) {
        let status = head.status;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            let shape = Shape {
                length: None,
                chunked: false,
                closes: false,
                websocket: true,
            };
            response::write(self.out.front(), head, &shape);
            (self.status, self.phase) = (Some(status), Phase::Upgraded);
            return;
        }
        if status.is_informational() {
            if status == StatusCode::CONTINUE && std::mem::take(&mut self.expects) {
                let front = self.out.front();
                front.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
            return;
        }
        let no_body = self.head.method == Method::HEAD
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED;
        let open = !no_body && head.length.is_none();
        let chunked = open && self.head.is_current;
        // Of a request that is still on its way, nobody knows whether its end will come.
        let closes = !self.head.persists || open && !chunked || !self.body.is_ended();
        let shape = Shape {
            length: head.length,
            chunked,
            closes,
            websocket: false,
        };
        response::write(self.out.front(), head, &shape);
        (self.status, self.closes) = (Some(status), closes);
        self.phase = Phase::Body { chunked };
    }

    /// Writes to the client, all the way where nothing more is there to write; whether anything was.
    fn write(&mut self, context: &mut Context<'_>) -> Result<bool, PlainError> {
        let mut moved = false;
        while !self.out.is_empty() {
            match self.out.poll_write(&mut *self.client.io, context) {
                Poll::Pending => break,
                Poll::Ready(Ok(written)) => self.received += written as u64,
                Poll::Ready(Err(error)) => return Err(PlainError::Gone(error)),
            }
            moved = true;
        }
        self.unflushed |= moved;
        if self.unflushed && self.out.is_empty() {
            let flushed = Pin::new(&mut *self.client.io).poll_flush(context);
            self.unflushed = flushed.map_err(PlainError::Gone)?.is_pending();
        }
        Ok(moved)
    }

    /// Ready once nothing has moved for too long.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<PlainError> {
        if std::mem::take(&mut self.moved) {
            let end = Instant::now() + self.bounds.idle;
            self.exchange.give_until(end.min(self.bounds.until));
        }
        self.exchange.poll_late(context).map(|()| self.late())
    }

    /// Who is waited for.
    fn late(&self) -> PlainError {
        let limit = self.bounds.idle;
        let host = self.exchange.destination().host.clone();
        if Instant::now() >= self.bounds.until {
            return Error::CallTimeout { host }.into();
        }
        if !self.out.is_empty() || self.unflushed {
            return PlainError::SlowReader(limit);
        }
        if self.exchange.takes() {
            return PlainError::SlowBody(limit);
        }
        match self.phase {
            Phase::Head => Error::FirstByteTimeout { host, limit }.into(),
            _ => Error::IdleTimeout { host, limit }.into(),
        }
    }
}
