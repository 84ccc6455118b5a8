//! One connection: hyper drives it, the watchdog bounds it, a drain ends it.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{
    Limits,
    gate::Gate,
    hush::Hush,
    watch::{self, Pulse, Wait, Watchdog, Watched},
};
use crate::refusal::Code;

/// The ends of a connection; unix sockets have none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peer {
    /// The address that the client reached.
    pub local: Option<SocketAddr>,
    /// The client's address.
    pub remote: Option<SocketAddr>,
}

/// What answers the requests of a listener.
pub trait Handle: Clone + Send + Sync + 'static {
    /// The body of its answers.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Unpin
        + 'static;

    /// Answers one request.
    fn handle(
        &self,
        request: Request<Incoming>,
        peer: Peer,
    ) -> impl Future<Output = Response<Self::Body>> + Send;

    /// Takes down what went wrong outside any request: a head that hyper refused, a failed handshake.
    fn fault(&self, code: Code, detail: &str);
}

/// What serves the connections of a listener: by their requests, as [`Handle`] does, or by their bytes.
pub trait Serve: Clone + Send + Sync + 'static {
    /// Serves one connection to its end.
    fn serve<S>(
        &self,
        stream: S,
        peer: Peer,
        limits: Limits,
        drain: &CancellationToken,
    ) -> impl Future<Output = ()> + Send
    where
        S: AsyncRead + AsyncWrite + Unpin + Send;

    /// Takes down what went wrong outside any request: a head that cannot be read, a failed handshake.
    fn fault(&self, code: Code, detail: &str);
}

impl<H: Handle> Serve for H {
    async fn serve<S>(&self, stream: S, peer: Peer, limits: Limits, drain: &CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        serve(stream, peer, self, limits, drain).await;
    }

    fn fault(&self, code: Code, detail: &str) {
        Handle::fault(self, code, detail);
    }
}

async fn serve<S, H>(stream: S, peer: Peer, handler: &H, limits: Limits, drain: &CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
    H: Handle,
{
    let (pulse, gate) = (Arc::new(Pulse::default()), Gate::new());
    let service = service_fn(|request: Request<Incoming>| {
        let life = watch::Request::begin(&pulse);
        let unheard = Unheard(Some(handler.clone()));
        let gate = gate.opened();
        async move {
            let handler = unheard.hear();
            // hyper keeps room for this future as long as the connection stands; its large part goes with the request.
            // Unlike `Box::new`, neither step takes it by way of the stack.
            let mut answering = Box::into_pin(Box::<Option<_>>::default());
            answering.set(Some(handler.handle(request, peer)));
            let answer = poll_fn(|cx| {
                let answering = answering.as_mut().as_pin_mut().expect("it was set above");
                gate.poll(cx, |cx| answering.poll(cx))
            })
            .await;
            Ok::<_, Infallible>(answer.map(|body| Answering {
                body,
                gate,
                _life: life,
            }))
        }
    });
    let io = TokioIo::new(Watched::new(stream, pulse.clone()));
    let mut connection = pin!(http().serve_connection(io, service));
    let mut watchdog = Watchdog::new(limits);
    let mut draining = pin!(drain.cancelled());
    let (mut closing, drained) = (false, Gate::new());
    let mut hush = Hush::default();
    let end = poll_fn(|cx| {
        if !closing && drained.poll(cx, |cx| draining.as_mut().poll(cx)).is_ready() {
            closing = true;
            connection.as_mut().graceful_shutdown();
        }
        let mut hushed = Context::from_waker(hush.waker(cx.waker()));
        if let Poll::Ready(end) = connection.as_mut().poll(&mut hushed) {
            return Poll::Ready(match (end, pulse.wait()) {
                // hyper takes what ends before a head for the end.
                (_, wait) if pulse.is_garbled() && wait != Wait::Busy => {
                    Some((Code::TlsFailed, "a TLS record cannot be read".to_owned()))
                }
                (Err(error), wait) => fault(&error, wait),
                (Ok(()), _) => None,
            });
        }
        watchdog.poll(cx, &pulse).map(late)
    })
    .await;
    if let Some((code, detail)) = end {
        Handle::fault(handler, code, &detail);
    }
}

/// A request that hyper has read and nobody has looked at. A client that ends its side at once has hyper drop it there,
/// and then it leaves its record here.
struct Unheard<H: Handle>(Option<H>);

impl<H: Handle> Unheard<H> {
    fn hear(mut self) -> H {
        self.0.take().expect("a request is heard once")
    }
}

impl<H: Handle> Drop for Unheard<H> {
    fn drop(&mut self) {
        if let Some(handler) = &self.0 {
            Handle::fault(
                handler,
                Code::ClientGone,
                "the connection ended before the request was looked at",
            );
        }
    }
}

fn http() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.header_read_timeout(None)
        .max_header_size(Limits::HEAD_BYTES)
        .max_buf_size(2 * Limits::HEAD_BYTES);
    http
}

/// What a connection's error means for the record. A request in flight has a record of its own.
fn fault(error: &hyper::Error, wait: Wait) -> Option<(Code, String)> {
    let code = if error.is_parse_too_large() {
        Code::HeadTooLarge
    } else if error.is_parse() {
        Code::BadHead
    } else if wait == Wait::Head || (error.is_incomplete_message() && wait != Wait::Busy) {
        Code::ClientGone
    } else {
        tracing::debug!(%error, "connection ended");
        return None;
    };
    Some((code, error.to_string()))
}

fn late(wait: Wait) -> Option<(Code, String)> {
    match wait {
        Wait::Head => Some((
            Code::SlowHead,
            "the request head did not end in time".to_owned(),
        )),
        Wait::Stalled => Some((
            Code::ClientGone,
            "the client did not take its answer".to_owned(),
        )),
        Wait::First | Wait::Idle | Wait::Busy => None,
    }
}

/// An answer's body; its end is the end of the request.
struct Answering<B> {
    body: B,
    gate: Gate,
    _life: watch::Request,
}

impl<B: Body + Unpin> Body for Answering<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let Self { body, gate, .. } = &mut *self;
        gate.poll(cx, |cx| Pin::new(body).poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Mutex};

    use http_body_util::Empty;
    use tokio::io::{AsyncReadExt as _, ReadBuf, join, sink};

    use super::*;

    /// Writes down what reaches it.
    #[derive(Clone, Default)]
    struct Ledger(Arc<Mutex<Vec<String>>>);

    impl Handle for Ledger {
        type Body = Empty<Bytes>;

        async fn handle(&self, request: Request<Incoming>, _: Peer) -> Response<Self::Body> {
            self.0.lock().unwrap().push(request.uri().to_string());
            Response::new(Empty::new())
        }

        fn fault(&self, code: Code, _: &str) {
            self.0.lock().unwrap().push(code.as_str().to_owned());
        }
    }

    /// A stream whose next TLS record is broken.
    struct Forged;

    impl AsyncRead for Forged {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "bad MAC")))
        }
    }

    async fn taken_down(input: impl AsyncRead + Unpin + Send) -> Vec<String> {
        let ledger = Ledger::default();
        let (limits, drain) = (Limits::default(), CancellationToken::new());
        let stream = join(input, sink());
        serve(stream, Peer::default(), &ledger, limits, &drain).await;
        ledger.0.lock().unwrap().clone()
    }

    #[tokio::test]
    async fn a_broken_tls_record_is_taken_down() {
        assert_eq!(taken_down(Forged).await, ["listen.tls_failed"]);
        let begun = b"GET /mcp".as_slice().chain(Forged);
        assert_eq!(taken_down(begun).await, ["listen.tls_failed"]);
    }

    #[tokio::test]
    async fn whatever_comes_before_the_end_is_taken_down_once() {
        for (input, taken) in [
            ("GET /a HTTP/1.1\r\n\r\n", &["listen.client_gone"][..]),
            (
                "POST /a HTTP/1.1\r\ncontent-length: 1\r\n\r\nx",
                &["listen.client_gone"],
            ),
            ("GET /a HTTP", &["listen.client_gone"]),
            ("x\r\n\r\n", &["listen.bad_head"]),
            ("", &[]),
        ] {
            assert_eq!(taken_down(input.as_bytes()).await, taken, "{input}");
        }
    }
}
