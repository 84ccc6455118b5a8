//! A plain request in the life of a client's connection: verdict, exchange, record, and what follows.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering::Relaxed},
    task::Poll,
    time::Duration,
};

use http::HeaderValue;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::Instant,
};

use super::{Bounds, Carried, Forwarded, Next, Source, forward};
use crate::{
    deadline::Alarm,
    egress::Io,
    refusal::Refusal,
    tunnel::{
        Body, Head, Proxy,
        answer::{self, Refused},
        client::Client,
        open::{Party, Seat, Tunnel},
        record::Entry,
        relay::{self, End, relay},
        visit::Visit,
    },
};

/// How long an exchange lasts before it is looked after as tunnels are.
const LONG: Duration = Duration::from_secs(1);

/// Serves one plain request; the client where another may follow.
pub(in crate::tunnel) async fn serve<S>(
    proxy: &Proxy,
    mut client: Client<S>,
    head: Head,
    accept: Option<HeaderValue>,
) -> Option<Client<S>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let (mut visit, seat) = match enter(proxy, &head) {
        Ok(entered) => entered,
        Err(refused) => {
            let keep = head.persists && matches!(head.body, Body::None | Body::Length(0));
            return reply(client, &refused, accept, keep && !head.websocket).await;
        }
    };
    let limits = &visit.policy.proxy.tunnels;
    let bounds = Bounds {
        idle: limits.idle,
        until: visit.entry.started() + limits.lifetime,
    };
    let carried = Carried::default();
    let mut watch = Watch {
        proxy,
        visit: &visit,
        head: &head,
        long: None,
    };
    let source = Source {
        io: &mut client.stream,
        input: &mut client.input,
    };
    let forwarding = forward(
        &proxy.egress,
        &visit.permit,
        &head,
        source,
        bounds,
        &carried,
    );
    let done = watch.until(&mut client.alarm, pin!(forwarding)).await;
    let long = watch.long.take();
    let done = match done {
        Ok(done) => done,
        Err(end) => {
            if let Some((_seat, tunnel)) = long {
                tunnel
                    .bytes_in
                    .store(carried.received.load(Relaxed), Relaxed);
                tunnel.bytes_out.store(carried.sent.load(Relaxed), Relaxed);
                visit.entry.opened(&tunnel);
                visit.entry.ended(&end);
            }
            return None;
        }
    };
    drop(long);
    if let Some(destination) = &done.destination {
        visit.entry.went_to(destination);
    }
    if let Next::Tunnel(io) = done.next {
        let seat = seat.expect("a WebSocket has taken its seat");
        let place = done.address.map(|address| address.socket().ip());
        let tunnel = Arc::new(tunnel(&visit, &head, place));
        websocket(client, io, visit, seat, tunnel).await;
        return None;
    }
    drop(seat);
    finish(client, done, &carried, &mut visit.entry, accept).await
}

/// The verdict and its record; a WebSocket takes the seat of a tunnel before anything of it is sent.
fn enter(proxy: &Proxy, head: &Head) -> Result<(Visit, Option<Seat>), Refused> {
    let mut visit = Visit::enter(&proxy.shared, head)?;
    let seat = match head.websocket {
        true => {
            let party = Party::of(&visit.caller);
            let seat = Seat::take(&proxy.shared, party, &visit.policy.proxy.tunnels);
            Some(seat.map_err(Refused::from))
        }
        false => None,
    };
    let seated = seat.transpose();
    let entered = seated.and_then(|seat| {
        visit.entry.allow(&visit.permit)?;
        Ok(seat)
    });
    match entered {
        Ok(seat) => Ok((visit, seat)),
        Err(refused) => {
            visit.entry.refuse(&refused);
            Err(refused)
        }
    }
}

/// An exchange that lasts is listed beside the tunnels: a policy that would refuse it ends it, too.
struct Watch<'a> {
    proxy: &'a Proxy,
    visit: &'a Visit,
    head: &'a Head,
    long: Option<(Seat, Arc<Tunnel>)>,
}

impl Watch<'_> {
    /// Waits for the exchange, or for what ends it from outside.
    async fn until<F>(
        &mut self,
        alarm: &mut Alarm,
        mut exchange: Pin<&mut F>,
    ) -> Result<Forwarded, End>
    where
        F: Future<Output = Forwarded>,
    {
        alarm.set(Some(Instant::now() + LONG));
        poll_fn(|cx| {
            if let Poll::Ready(done) = exchange.as_mut().poll(cx) {
                return Poll::Ready(Ok(done));
            }
            if self.long.is_none() && alarm.poll(cx).is_ready() {
                alarm.set(None);
                let mut seat = Seat::beyond(&self.proxy.shared, Party::of(&self.visit.caller));
                let tunnel = Arc::new(tunnel(self.visit, self.head, None));
                seat.open(tunnel.clone());
                self.long = Some((seat, tunnel));
            }
            let ended = self.long.as_ref().and_then(|(_, tunnel)| tunnel.ended(cx));
            ended.map_or(Poll::Pending, |end| Poll::Ready(Err(end)))
        })
        .await
    }
}

fn tunnel(visit: &Visit, head: &Head, place: Option<std::net::IpAddr>) -> Tunnel {
    let rule = visit.entry.rule();
    let (caller, permit) = (visit.caller.clone(), &visit.permit);
    Tunnel::new(visit.entry.began(), caller, permit, rule, place).of_request(head)
}

/// Carries a WebSocket.
async fn websocket<S>(
    client: Client<S>,
    target: Box<dyn Io>,
    visit: Visit,
    mut seat: Seat,
    tunnel: Arc<Tunnel>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let limits = &visit.policy.proxy.tunnels;
    let bounds = relay::Bounds {
        idle: limits.idle,
        stall: client.patience.stall,
        end: visit.entry.started() + limits.lifetime,
        bytes: limits.bytes,
    };
    let mut entry = visit.entry;
    drop((visit.policy, visit.permit, visit.caller));
    seat.open(tunnel.clone());
    entry.opened(&tunnel);
    let end = relay(client, target, &tunnel, &bounds).await;
    entry.ended(&end);
}

/// Records what came of an exchange, and ends it towards the client.
async fn finish<S>(
    mut client: Client<S>,
    done: Forwarded,
    carried: &Carried,
    entry: &mut Entry,
    accept: Option<HeaderValue>,
) -> Option<Client<S>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let refusal = done.error.as_ref().map(Refusal::from);
    let bytes = (carried.received.load(Relaxed), carried.sent.load(Relaxed));
    entry.served(bytes, done.address, refusal.as_ref());
    let keep = matches!(done.next, Next::Keep);
    if let (None, Some(refusal)) = (done.status, refusal) {
        return reply(client, &refusal.into(), accept, keep).await;
    }
    match done.next {
        Next::Keep => {
            client.release();
            return Some(client);
        }
        Next::Close => client.linger().await,
        Next::Cut | Next::Tunnel(_) => {}
    }
    None
}

/// Answers in the target's place.
async fn reply<S>(
    mut client: Client<S>,
    refused: &Refused,
    accept: Option<HeaderValue>,
    keep: bool,
) -> Option<Client<S>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    if !keep {
        client.refuse(refused, accept).await;
        return None;
    }
    let answer = answer::bytes(refused, accept.as_ref(), true);
    client.write(&answer).await.then_some(client)
}
