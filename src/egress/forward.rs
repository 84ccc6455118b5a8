//! A plain request of the forward proxy, from its permit to the last byte of its answer. Bodies stream both ways, and
//! whoever asks for the answer moves them.

mod request;

use std::{
    fmt,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header::UPGRADE};
use tokio::time::Instant;

use super::{
    Destination, DialError, Egress, Error, Failed, Fields, Io,
    connect::{Opened, Route},
    exchange::{Live, Wire},
    http1::{Fault, Framing, Heads, length, only_chunked},
    pool::{Key, keep_for},
};
use crate::{address::JudgedAddr, deadline::Deadline, policy::ProxyPermit};

/// The name of this proxy in `Via` (RFC 9110, section 7.6.3).
pub const VIA: &str = "1.1 tollgate";

/// What is ours to say, and nobody else's.
const OWN: &[u8] = b"tollgate-";

/// Whether a field of this name is for us, or from us, and goes no further.
pub fn is_own(name: &[u8]) -> bool {
    let start = name.get(..OWN.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(OWN))
}

/// A request as its client sent it. The place it goes to comes from the permit, `Host` with it.
#[derive(Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a Method,
    /// Path and query, or `*`.
    pub path: &'a str,
    /// The fields to forward, without those about the connection and the framing.
    pub headers: &'a HeaderMap,
    /// How its body is framed.
    pub framing: Sent,
    /// Whether it asks for a WebSocket.
    pub websocket: bool,
    /// What has come of the body.
    pub first: Bytes,
    /// Whether that is all of it.
    pub whole: bool,
}

/// How the body of a request is framed (RFC 9112, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// There is none.
    Nothing,
    /// So many bytes, which whoever gives them counts.
    Length(u64),
    /// In chunks.
    Chunked,
}

/// A request that was begun, and the answer to it as it comes. Dropped before its end, it closes the connection.
pub struct Forward {
    egress: Egress,
    live: Box<Live>,
    key: Key,
    method: Method,
    framing: Sent,
    websocket: bool,
    /// Whether all of the request was given.
    whole: bool,
    heads: Heads,
    /// How long its connection may be idle afterwards.
    keep: Duration,
    destination: Destination,
}

/// The head of an answer.
#[derive(Debug)]
pub struct Head {
    /// The status; 1xx is followed by another head, but for 101 to who asked for a WebSocket.
    pub status: StatusCode,
    /// The fields as they came.
    pub headers: Fields,
    /// What the head says of the length of the body; of an answer to HEAD, and of 304, of the body that it is about.
    pub length: Option<u64>,
}

impl Egress {
    /// Judges where a request goes and begins to send it: over an idle connection, else over a fresh one. It is never
    /// begun again once a byte may have left.
    ///
    /// # Errors
    ///
    /// [`Failed`], of which nothing was sent.
    pub async fn forward(
        &self,
        permit: &ProxyPermit,
        request: Request<'_>,
        deadline: Deadline,
    ) -> Result<Forward, Failed> {
        let route = self.route(permit, deadline).await;
        let route = route.map_err(|error| Failed::unsent(error, None))?;
        let wire = request::wire(permit.target(), &request);
        let (method, framing) = (request.method.clone(), request.framing);
        match self.begin(permit, &route, wire, deadline).await {
            Ok((key, live)) => Ok(Forward {
                egress: self.clone(),
                live,
                key,
                method,
                framing,
                websocket: request.websocket,
                whole: request.whole,
                heads: Heads::all(),
                keep: Duration::ZERO,
                destination: route.destination,
            }),
            Err(error) => Err(Failed::unsent(error, Some(route.destination))),
        }
    }

    async fn begin(
        &self,
        permit: &ProxyPermit,
        route: &Route,
        mut wire: Wire,
        deadline: Deadline,
    ) -> Result<(Key, Box<Live>), Error> {
        for address in &route.addresses {
            let key = Key::of_proxy(permit, *address);
            while let Some(mut live) = self.0.pool.take(&key, Instant::now()) {
                match live.begin(wire) {
                    Ok(()) => {
                        self.0.metrics.connection(true);
                        return Ok((key, live));
                    }
                    // The peer closed it while it was idle.
                    Err(back) => wire = back.into_wire(),
                }
            }
        }
        let opened = Box::pin(self.open_route(permit, route, deadline)).await?;
        self.0.metrics.connection(false);
        let Opened { io, early, address } = opened;
        let mut live = Live::new(io);
        let began = match early.is_empty() {
            true => live.begin(wire).map_err(|back| back.into_source()),
            false => Err(Fault::Unasked),
        };
        began.map_err(|source| Error::Connect {
            host: route.destination.host.clone(),
            source: DialError::Closed(source),
        })?;
        Ok((Key::of_proxy(permit, address), live))
    }
}

impl Forward {
    /// Where it went.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Where exactly, as [`Connected::address`](super::Connected::address).
    pub fn address(&self) -> JudgedAddr {
        self.key.address()
    }

    /// Whether it takes more of the request's body: all that it was given is written, and there is more to come.
    pub fn takes(&self) -> bool {
        !self.whole && self.live.takes()
    }

    /// Takes the next piece of the request's body, once it [takes](Self::takes) it; `whole` says that it is the last.
    pub fn give(&mut self, piece: Bytes, whole: bool) {
        self.whole = whole;
        let piece = match self.framing {
            Sent::Chunked => request::chunk(&piece, whole),
            Sent::Nothing | Sent::Length(_) => piece,
        };
        if !piece.is_empty() {
            let (method, body) = (self.method.clone(), Bytes::new());
            self.live.give(Wire {
                method,
                head: piece,
                body,
            });
        }
    }

    /// Writes what it was given, where nothing of the answer is wanted meanwhile.
    pub fn poll_send(&mut self, context: &mut Context<'_>) {
        self.live.write(context);
    }

    /// Sets the end of what is waited for next.
    pub fn give_until(&mut self, end: Instant) {
        self.live.give_until(end);
    }

    /// Ready once that end has come.
    pub fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.live.poll_late(context)
    }

    /// The next head: interim ones, then that of the answer. What was given is written on the way.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], and where the head is of no use [`Error::ResponseHead`], [`Error::Upgrade`], [`Error::Coding`].
    pub fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<Result<Head, Error>> {
        let head = ready!(self.live.poll_head(&self.method, &mut self.heads, context));
        Poll::Ready(match head {
            Ok((status, headers)) => self.accept(status, headers),
            Err(fault) => Err(Error::broken(&self.destination.host, fault)),
        })
    }

    /// What is ready of the body, as one piece; `None` at its end. What was given is written on the way.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], behind all that came before it.
    pub fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        let data = ready!(self.live.poll_data(context));
        Poll::Ready(data.map_err(|fault| Error::broken(&self.destination.host, fault)))
    }

    /// Whether the whole answer was taken.
    pub fn is_ended(&self) -> bool {
        self.live.is_ended()
    }

    /// Ends it: its connection serves again if both the request and the answer are whole.
    pub fn finish(self) {
        let rest = self.whole.then(|| self.live.rest()).flatten();
        if let Some(live) = rest {
            self.egress.0.pool.park(self.key, live, self.keep);
        }
    }

    /// The connection after 101, and what came on it behind that head.
    pub fn into_stream(self) -> (Box<dyn Io>, Bytes) {
        self.live.into_stream()
    }

    fn accept(&mut self, status: StatusCode, headers: Fields) -> Result<Head, Error> {
        let host = || self.destination.host.clone();
        if status == StatusCode::SWITCHING_PROTOCOLS {
            if !self.websocket || !is_websocket(&headers) {
                return Err(Error::Upgrade { host: host() });
            }
        } else if !status.is_informational() {
            only_chunked(&headers).map_err(|coding| Error::Coding {
                host: host(),
                coding,
            })?;
            // Where a parent proxy resolves names, no address tells which connection would do again.
            if !self.destination.addresses.is_empty() {
                self.keep = keep_for(&headers);
            }
        }
        let about_another = self.method == Method::HEAD || status == StatusCode::NOT_MODIFIED;
        let length = match self.live.framing() {
            _ if status == StatusCode::NO_CONTENT => None,
            _ if about_another => length(&headers).ok().flatten(),
            Framing::Length(length) => Some(*length),
            Framing::Chunked(_) | Framing::Close => None,
        };
        Ok(Head {
            status,
            headers,
            length,
        })
    }
}

impl fmt::Debug for Forward {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Forward")
            .field("destination", &self.destination)
            .field("ended", &self.is_ended())
            .finish_non_exhaustive()
    }
}

fn is_websocket(headers: &Fields) -> bool {
    let mut protocols = headers.all(&UPGRADE);
    let first: Option<&[u8]> = protocols.next();
    first.is_some_and(|name| name.eq_ignore_ascii_case(b"websocket")) && protocols.next().is_none()
}
