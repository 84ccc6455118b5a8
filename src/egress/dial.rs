//! The only file that opens TCP connections, and only to judged addresses.

use std::{collections::VecDeque, io, net::SocketAddr, time::Duration};

use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use nix::errno::Errno;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, sleep_until},
};

use super::Fault;
use crate::address::JudgedAddr;

/// How long one address is given before the next is tried beside it (RFC 8305, section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// A byte stream to a peer.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Who opens connections.
pub trait Dial: Send + Sync {
    /// Connects to one judged address.
    fn dial(&self, address: JudgedAddr) -> BoxFuture<'_, io::Result<Box<dyn Io>>>;
}

/// The real dialer.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpDialer;

impl Dial for TcpDialer {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that opens outbound connections"
    )]
    fn dial(&self, address: JudgedAddr) -> BoxFuture<'_, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address.socket()).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}

/// No judged address accepted a connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The time for connecting ran out.
    #[error("no address answered in time, {} failed before: {}", tried.len(), list(tried))]
    TimedOut {
        /// Addresses that failed before that.
        tried: Vec<(SocketAddr, io::Error)>,
    },
    /// Every address failed; for example refused, or unreachable.
    #[error("every address failed: {}", list(tried))]
    Failed {
        /// Each address and what it said, in the order of their failure.
        tried: Vec<(SocketAddr, io::Error)>,
    },
    /// An address accepted, and closed again before it took the request.
    #[error("it was closed before it took the request")]
    Closed(#[source] Fault),
}

impl DialError {
    /// Whether the fault is this machine's, and not the address's.
    pub(super) fn is_exhaustion(&self) -> bool {
        let (Self::Failed { tried } | Self::TimedOut { tried }) = self else {
            return false;
        };
        let numbers = tried.iter().filter_map(|(_, error)| error.raw_os_error());
        numbers.map(Errno::from_raw).any(|number| {
            matches!(
                number,
                Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM
            )
        })
    }
}

/// Connects to the first address that accepts, in their order, each with a head start before the next.
pub(super) async fn connect(
    dialer: &dyn Dial,
    addresses: &[JudgedAddr],
    until: Instant,
) -> Result<(Box<dyn Io>, JudgedAddr), DialError> {
    let mut waiting: VecDeque<JudgedAddr> = addresses.iter().copied().collect();
    let mut running = FuturesUnordered::new();
    let mut tried = Vec::new();
    let mut next = Instant::now();
    loop {
        let overdue = running.is_empty() || Instant::now() >= next;
        if overdue && let Some(address) = waiting.pop_front() {
            running.push(async move { (address, dialer.dial(address).await) });
            next = Instant::now() + HEAD_START;
        }
        if running.is_empty() {
            return Err(DialError::Failed { tried });
        }
        tokio::select! {
            biased;
            Some((address, result)) = running.next() => match result {
                Ok(stream) => return Ok((stream, address)),
                Err(error) => {
                    tried.push((address.socket(), error));
                    next = Instant::now();
                }
            },
            () = sleep_until(until) => return Err(DialError::TimedOut { tried }),
            () = sleep_until(next), if !waiting.is_empty() => {}
        }
    }
}

fn list(tried: &[(SocketAddr, io::Error)]) -> String {
    let texts: Vec<String> = tried
        .iter()
        .map(|(address, error)| format!("{address}: {error}"))
        .collect();
    texts.join(", ")
}
