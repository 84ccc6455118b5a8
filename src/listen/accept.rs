//! Accepting: one loop per socket, a shared bound on connections, and a pause when the machine runs out of something.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Limits, Peer, Serve, Socket, Tls};
use crate::{
    refusal::Code,
    telemetry::{Gauge, Metrics},
};

/// How long a worker rests when the machine has no descriptor or memory left.
const REST: Duration = Duration::from_millis(100);

const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
content-length: 135\r\nretry-after: 1\r\nconnection: close\r\n\r\n\
{\"error\":{\"code\":\"listen.overloaded\",\"message\":\"too many connections are open\",\
\"remedy\":\"try again later, and reuse open connections\"}}";

/// What all workers of a listener share.
#[derive(Clone)]
pub struct Lobby {
    seats: Arc<Semaphore>,
    limits: Limits,
    tls: Option<Tls>,
    metrics: Arc<Metrics>,
    drain: CancellationToken,
}

impl Lobby {
    /// A listener's bounds. `drain` stops accepting and lets open connections finish.
    pub fn new(
        limits: Limits,
        tls: Option<Tls>,
        metrics: Arc<Metrics>,
        drain: CancellationToken,
    ) -> Self {
        Self {
            seats: Arc::new(Semaphore::new(limits.connections)),
            limits,
            tls,
            metrics,
            drain,
        }
    }
}

/// Accepts until the drain, then until every connection has ended.
///
/// # Errors
///
/// A socket that this runtime cannot take over.
pub async fn accept<H: Serve>(socket: Socket, lobby: Lobby, handler: H) -> io::Result<()> {
    let tasks = TaskTracker::new();
    match socket {
        Socket::Tcp(socket) => run(&TcpListener::from_std(socket)?, &lobby, &handler, &tasks).await,
        Socket::Unix(socket) => {
            run(&UnixListener::from_std(socket)?, &lobby, &handler, &tasks).await
        }
    }
    tasks.close();
    tasks.wait().await;
    Ok(())
}

async fn run<H: Serve>(source: &impl Source, lobby: &Lobby, handler: &H, tasks: &TaskTracker) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = lobby.drain.cancelled() => return,
            accepted = source.next() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => admit(stream, peer, lobby, handler, tasks),
            Err(error) => {
                lobby.metrics.listen_accept_failures.inc();
                if is_exhaustion(&error) {
                    tracing::warn!(%error, "cannot accept connections; resting");
                    sleep(REST).await;
                }
            }
        }
    }
}

fn admit<S: Stream, H: Serve>(
    stream: S,
    peer: Peer,
    lobby: &Lobby,
    handler: &H,
    tasks: &TaskTracker,
) {
    let Ok(seat) = lobby.seats.clone().try_acquire_owned() else {
        lobby.metrics.listen_turned_away.inc();
        // No record: a flood of them would take the room that calls need.
        if lobby.tls.is_none() {
            stream.try_say(FULL);
        }
        return;
    };
    let (lobby, handler) = (lobby.clone(), handler.clone());
    let Some(tls) = lobby.tls.clone() else {
        // A task of its own: beside TLS it would keep room for the state of a handshake.
        tasks.spawn(async move {
            let _open = Open::new(&lobby.metrics.listen_connections);
            let _seat = seat;
            handler
                .serve(stream, peer, lobby.limits, &lobby.drain)
                .await;
        });
        return;
    };
    tasks.spawn(async move {
        let _open = Open::new(&lobby.metrics.listen_connections);
        let _seat = seat;
        let handshake = tokio::select! {
            () = lobby.drain.cancelled() => return,
            handshake = timeout(lobby.limits.head, tls.accept(stream)) => handshake,
        };
        match handshake {
            Ok(Ok(stream)) => {
                handler
                    .serve(stream, peer, lobby.limits, &lobby.drain)
                    .await;
            }
            Ok(Err(error)) => handler.fault(Code::TlsFailed, &error.to_string()),
            Err(_) => handler.fault(Code::TlsFailed, "the handshake did not end in time"),
        }
    });
}

/// An open connection, counted until it is dropped.
struct Open(Gauge);

impl Open {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Whether to rest: the next `accept` would fail alike. Anything else is the fault of one connection.
fn is_exhaustion(error: &io::Error) -> bool {
    use nix::errno::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(
        errno,
        Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM)
    )
}

/// Where connections come from.
trait Source: Sync {
    type Stream: Stream;

    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, Peer)>> + Send;
}

impl Source for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<(TcpStream, Peer)> {
        let (stream, remote) = self.accept().await?;
        // Small answers must not wait for the acknowledgement of what went before.
        stream.set_nodelay(true)?;
        let peer = Peer {
            local: Some(stream.local_addr()?),
            remote: Some(remote),
        };
        Ok((stream, peer))
    }
}

impl Source for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<(UnixStream, Peer)> {
        let (stream, _) = self.accept().await?;
        Ok((stream, Peer::default()))
    }
}

/// A connection, before anything is known of it.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Writes what the socket takes at once. Who is turned away is owed no more.
    fn try_say(&self, text: &[u8]);
}

impl Stream for TcpStream {
    fn try_say(&self, text: &[u8]) {
        drop(self.try_write(text));
    }
}

impl Stream for UnixStream {
    fn try_say(&self, text: &[u8]) {
        drop(self.try_write(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_house_answer_is_well_formed() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-length: {}\r\n", body.len())),
            "{}",
            body.len()
        );
        let json: serde_json::Value = serde_json::from_str(body).unwrap();
        let code = Code::Overloaded;
        assert_eq!(json["error"]["code"], code.as_str());
        assert_eq!(json["error"]["remedy"], code.remedy());
    }
}
