//! CONNECT (RFC 9110, section 9.3.6): from the verdict to an open tunnel, and through it.

use std::{future::poll_fn, sync::Arc, task::Poll};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::Instant,
};

use super::{
    Head, HelloError, HelloReader, Proxy, Timeouts,
    answer::{Asked, Refused},
    client::Client,
    open::{Kind, Party, Seat, Tunnel},
    proxy::OPENING,
    record::Entry,
    relay::{Bounds, ClosedBy, End, relay},
    visit::Visit,
};
use crate::{
    deadline::Deadline,
    egress::Io,
    policy::TunnelTls,
    refusal::{Code, Refusal},
};

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection Established\r\n\r\n";

/// The TLS alert `unrecognized_name` (RFC 8446, section 6.2), which clients show.
const UNRECOGNIZED_NAME: &[u8] = &[21, 3, 3, 0, 2, 2, 112];

/// Serves a CONNECT until its tunnel stands; `None` where it does not, and the connection has ended.
pub(super) async fn establish<S>(
    proxy: &Proxy,
    mut client: Client<S>,
    head: Head,
) -> Option<(Client<S>, Opened)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let asked = Asked::of(&head);
    let mut visit = match Visit::enter(&proxy.shared, &head) {
        Ok(visit) => visit,
        Err(refused) => {
            client.refuse(&refused, &asked).await;
            return None;
        }
    };
    drop(head);
    let (listed, stream) = match open(proxy, &mut client, &mut visit).await {
        Ok(opened) => opened,
        Err(refused) => {
            visit.entry.refuse(&refused);
            client.refuse(&refused, &asked).await;
            return None;
        }
    };
    let mut opened = Opened::new(visit, listed, stream, client.timeouts);
    match begin(&mut client, &opened.tunnel).await {
        Ok(()) => Some((client, opened)),
        Err(end) => {
            opened.entry.ended(&end);
            drop(opened);
            tell(client, &end).await;
            None
        }
    }
}

/// Says why what the tunnel began with is refused, in the language that the client began: a connection that just ends
/// tells nothing. Whether it arrives makes no difference.
async fn tell<S>(mut client: Client<S>, end: &End)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Some(refused) = &end.refused else {
        return;
    };
    match refused.refusal.code {
        Code::SniMismatch | Code::SniMissing => drop(client.write(UNRECOGNIZED_NAME).await),
        Code::NotTls if speaks_http(&client.input) => {
            client.refuse(refused, &Asked::default()).await;
        }
        _ => {}
    }
}

/// Whether `input` begins with what may be the method of a request: libraries send plain HTTP through tunnels, too.
fn speaks_http(input: &[u8]) -> bool {
    let letters = input.iter().take_while(|byte| byte.is_ascii_uppercase());
    let length = letters.count();
    (3..=8).contains(&length) && input.get(length) == Some(&b' ')
}

/// A tunnel whose target is connected to.
pub(super) struct Opened {
    tunnel: Arc<Tunnel>,
    target: Box<dyn Io>,
    /// What has come from the target.
    early: Bytes,
    bounds: Bounds,
    entry: Entry,
    _seat: Seat,
}

impl Opened {
    /// What decided is not kept for as long as the tunnel stands: only its record is.
    pub(super) fn new(
        visit: Visit,
        (seat, tunnel): (Seat, Arc<Tunnel>),
        (target, early): (Box<dyn Io>, Bytes),
        timeouts: Timeouts,
    ) -> Self {
        let limits = &visit.policy.proxy.tunnels;
        let mut entry = visit.entry;
        entry.opened(&tunnel);
        Self {
            bounds: Bounds {
                idle: limits.idle,
                stall: timeouts.stall,
                end: entry.started() + limits.lifetime,
                bytes: limits.bytes,
            },
            tunnel,
            target,
            early,
            entry,
            _seat: seat,
        }
    }

    /// Carries bytes both ways, to the end.
    pub(super) async fn carry<S>(mut self, client: Client<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let early = BytesMut::from(self.early);
        let end = relay(client, self.target, early, &self.tunnel, &self.bounds).await;
        self.entry.ended(&end);
    }
}

/// Takes a seat, records the verdict and connects. Nothing that the client sends before the answer is looked at as a tunnel's.
async fn open<S>(
    proxy: &Proxy,
    client: &mut Client<S>,
    visit: &mut Visit,
) -> Result<((Seat, Arc<Tunnel>), (Box<dyn Io>, Bytes)), Refused>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    check_early(client)?;
    let party = Party::of(&visit.caller);
    let mut seat = Seat::take(
        &proxy.shared,
        party,
        Kind::Tunnel,
        &visit.policy.proxy.tunnels,
    )?;
    visit.entry.allow(&visit.permit)?;
    // Its state is large, and no longer there once the tunnel stands.
    let connecting = Box::pin(
        proxy
            .egress
            .connect(&visit.permit, Deadline::after(OPENING)),
    );
    let connected = connecting.await.map_err(|failed| {
        if let Some(destination) = &failed.destination {
            visit.entry.went_to(destination);
        }
        failed.error.refusal()
    })?;
    let (destination, address) = (&connected.destination, connected.address);
    visit.entry.connected(destination, address);
    check_early(client)?;
    let tunnel = Tunnel::new(
        visit.entry.began(),
        visit.caller.clone(),
        &visit.permit,
        visit.entry.rule(),
    );
    tunnel.leads_to(destination, address);
    let tunnel = seat.open(tunnel);
    Ok(((seat, tunnel), (connected.io, connected.early)))
}

/// Refuses what came behind the head, before a tunnel is open (it could be meant for somebody else).
fn check_early<S: AsyncRead + AsyncWrite + Unpin>(client: &mut Client<S>) -> Result<(), Refusal> {
    if client.input.is_empty() {
        match poll_fn(|cx| client.poll_fill(cx)).now_or_never() {
            None => return Ok(()),
            Some(Ok(1..)) => {}
            Some(Ok(0) | Err(_)) => {
                let public = "the client left before the tunnel was open";
                return Err(Refusal::new(Code::ClientGone, public));
            }
        }
    }
    let public = "bytes came before the tunnel was open";
    Err(Refusal::new(Code::EarlyData, public))
}

/// Tells the client that the tunnel is open, and reads what it begins with. The target was connected to before: clients
/// speak only after the answer, and one that cannot be reached has to be told as such.
async fn begin<S>(client: &mut Client<S>, tunnel: &Tunnel) -> Result<(), End>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if !client.write(ESTABLISHED).await {
        return Err(End::by(ClosedBy::Client));
    }
    if tunnel.tls == TunnelTls::Opaque {
        return Ok(());
    }
    hello(client, tunnel).await
}

/// Waits for a ClientHello that names the tunnel's host.
async fn hello<S>(client: &mut Client<S>, tunnel: &Tunnel) -> Result<(), End>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let refuse = |error: HelloError| End::refused(ClosedBy::Hello, Refusal::from(error).into());
    let mut reader = HelloReader::default();
    client
        .alarm
        .set(Some(Instant::now() + client.timeouts.head));
    poll_fn(|cx| {
        if let Some(end) = tunnel.ended(cx) {
            return Poll::Ready(Err(end));
        }
        loop {
            match client.poll_fill(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(Err(End::by(ClosedBy::Client))),
                Poll::Pending => {
                    return client.alarm.poll(cx).map(|()| {
                        let late = "no whole TLS ClientHello came in time";
                        let late = Refusal::new(Code::SlowHello, late);
                        Err(End::refused(ClosedBy::Hello, late.into()))
                    });
                }
            }
            let read = reader.read(&client.input);
            let checked = read.and_then(|hello| match hello {
                Some(hello) => hello.check(tunnel.target.host()).map(Some),
                None => Ok(None),
            });
            match checked {
                Ok(Some(())) => return Poll::Ready(Ok(())),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(refuse(error))),
            }
        }
    })
    .await
}
