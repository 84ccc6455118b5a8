//! One plain request: its verdict, its exchange, its records.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    Body, Bounds, Forwarded, Head, Next, Proxy,
    answer::{self, Asked, Refused},
    client::Client,
    connect::Opened,
    open::{Kind, Party, Seat, Tunnel},
    plain,
    relay::End,
    visit::Visit,
};
use crate::refusal::Refusal;

/// How the connection goes on.
pub(super) enum Then {
    /// With another request.
    Next,
    /// It is closed, and what the client still sends is dropped.
    Close,
    /// It is closed at once.
    Cut,
    /// It is a WebSocket.
    Tunnel(Box<Opened>),
}

/// Serves a plain request.
pub(super) async fn serve<S>(proxy: &Proxy, client: &mut Client<S>, head: Head) -> Then
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    // A body that nobody reads would be taken for the next request.
    let is_bare = matches!(head.body, Body::None | Body::Length(0));
    let keep = match is_bare && head.persists {
        true => Then::Next,
        false => Then::Close,
    };
    let asked = Asked::of(&head);
    let mut visit = match Visit::enter(&proxy.shared, &head) {
        Ok(visit) => visit,
        Err(refused) => return refuse(client, &refused, &asked, keep).await,
    };
    let (seat, tunnel) = match open(proxy, &head, &mut visit) {
        Ok(opened) => opened,
        Err(refused) => {
            visit.entry.refuse(&refused);
            return refuse(client, &refused, &asked, keep).await;
        }
    };
    let limits = &visit.policy.proxy.tunnels;
    let bounds = Bounds {
        idle: limits.idle,
        until: visit.entry.started() + limits.lifetime,
    };
    let connection = plain::Source {
        io: &mut client.stream,
        input: &mut client.input,
    };
    let (egress, permit) = (&proxy.egress, &visit.permit);
    // Its state is large, and gone before the next head is waited for.
    let exchange = Box::pin(plain::forward(
        egress,
        permit,
        &head,
        connection,
        bounds,
        |destination, address| tunnel.leads_to(destination, address),
    ));
    match unless_cut(&tunnel, exchange).await {
        Ok(forwarded) => answered(client, forwarded, visit, (seat, tunnel), &asked).await,
        Err(end) => {
            visit.entry.cut(&end);
            Then::Cut
        }
    }
}

/// Takes a seat, records the verdict, and lists the request.
fn open(proxy: &Proxy, head: &Head, visit: &mut Visit) -> Result<(Seat, Arc<Tunnel>), Refused> {
    let kind = match head.websocket {
        true => Kind::Tunnel,
        false => Kind::Request,
    };
    let (party, limits) = (Party::of(&visit.caller), &visit.policy.proxy.tunnels);
    let mut seat = Seat::take(&proxy.shared, party, kind, limits)?;
    visit.entry.allow(&visit.permit)?;
    let tunnel = Tunnel::new(
        visit.entry.began(),
        visit.caller.clone(),
        &visit.permit,
        visit.entry.rule(),
    );
    let tunnel = tunnel.showing(&head.method, head.path.as_deref().unwrap_or_default());
    let tunnel = seat.open(tunnel);
    Ok((seat, tunnel))
}

/// What becomes of an exchange, unless a policy ends it before.
async fn unless_cut(
    tunnel: &Tunnel,
    mut exchange: Pin<Box<impl Future<Output = Forwarded>>>,
) -> Result<Forwarded, End> {
    poll_fn(|cx| match tunnel.ended(cx) {
        Some(end) => Poll::Ready(Err(end)),
        None => exchange.as_mut().poll(cx).map(Ok),
    })
    .await
}

async fn answered<S>(
    client: &mut Client<S>,
    mut forwarded: Forwarded,
    mut visit: Visit,
    (seat, tunnel): (Seat, Arc<Tunnel>),
    asked: &Asked,
) -> Then
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let next = std::mem::replace(&mut forwarded.next, Next::Close);
    let then = match next {
        Next::Keep => Then::Next,
        Next::Close => Then::Close,
        Next::Cut => Then::Cut,
        Next::Tunnel { io, early } => {
            if let (Some(destination), Some(address)) = (&forwarded.destination, forwarded.address)
            {
                visit.entry.connected(destination, address);
            }
            let opened = Opened::new(visit, (seat, tunnel), (io, early), client.timeouts);
            return Then::Tunnel(Box::new(opened));
        }
    };
    visit.entry.answered(&forwarded);
    client.release();
    match (&forwarded.error, forwarded.status) {
        (Some(error), None) => {
            let refused = Refused::from(Refusal::from(error));
            refuse(client, &refused, asked, then).await
        }
        _ => then,
    }
}

/// Answers with a refusal; the connection goes on as `then` says, if the client takes it.
async fn refuse<S>(client: &mut Client<S>, refused: &Refused, asked: &Asked, then: Then) -> Then
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let keep = matches!(then, Then::Next);
    match client.write(&answer::bytes(refused, asked, keep)).await {
        true => then,
        false => Then::Cut,
    }
}
