//! Both ways through an open tunnel: one task, no buffer while nothing moves.

mod way;

use std::{
    future::poll_fn,
    sync::atomic::Ordering::Relaxed,
    task::{Context, Poll},
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::Instant,
};

use self::way::Way;
use super::{answer::Refused, client::Client, open::Tunnel};

/// The longest silence of a tunnel of which one side has ended.
const HALF_CLOSED: Duration = Duration::from_secs(60);
/// The longest silence of a tunnel that is told to end.
const DRAINING: Duration = Duration::from_secs(2);

/// Who or what closed a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClosedBy {
    /// The client, by its end or by a fault of its side.
    Client,
    /// The target, likewise.
    Target,
    /// What it began with.
    Hello,
    /// It was silent for too long.
    Idle,
    /// It was open for too long.
    Lifetime,
    /// It carried too much.
    Bytes,
    /// One side did not take what the other sent.
    Stalled,
    /// A policy that refuses it.
    Policy,
    /// Its caller's key no longer holds.
    Credential,
    /// The end of the process.
    Drain,
}

impl ClosedBy {
    /// As records and metrics name it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Target => "target",
            Self::Hello => "hello",
            Self::Idle => "idle",
            Self::Lifetime => "lifetime",
            Self::Bytes => "bytes",
            Self::Stalled => "stalled",
            Self::Policy => "policy",
            Self::Credential => "credential",
            Self::Drain => "drain",
        }
    }
}

/// How a tunnel ended.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) by: ClosedBy,
    pub(super) refused: Option<Refused>,
}

impl End {
    pub(super) fn by(by: ClosedBy) -> Self {
        Self { by, refused: None }
    }

    pub(super) fn refused(by: ClosedBy, refused: Refused) -> Self {
        Self {
            by,
            refused: Some(refused),
        }
    }
}

/// What one tunnel may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Without a byte in either direction.
    pub(super) idle: Duration,
    /// Without taking what the other side sent.
    pub(super) stall: Duration,
    /// Its end in any case.
    pub(super) end: Instant,
    /// Bytes of both directions.
    pub(super) bytes: u64,
}

/// Carries bytes both ways until both sides have ended, or a bound is reached; what either
/// side sent already comes first: `early` is from the target.
pub(super) async fn relay<C, T>(
    client: Client<C>,
    target: T,
    early: BytesMut,
    tunnel: &Tunnel,
    bounds: &Bounds,
) -> End
where
    C: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let Client {
        stream,
        input,
        mut alarm,
        ..
    } = client;
    let mut flow = Flow {
        client: stream,
        target,
        out: Way::new(input),
        back: Way::new(early),
        first: None,
        moved: Instant::now(),
    };
    poll_fn(|cx| {
        if let Some(end) = tunnel.ended(cx) {
            return Poll::Ready(end);
        }
        if let Poll::Ready(by) = flow.poll(cx, tunnel) {
            return Poll::Ready(End::by(by));
        }
        if flow.out.moved + flow.back.moved > bounds.bytes {
            return Poll::Ready(End::by(ClosedBy::Bytes));
        }
        let (until, by) = flow.patience(bounds, tunnel.is_draining());
        alarm.set(Some(until));
        alarm.poll(cx).map(|()| End::by(by))
    })
    .await
}

struct Flow<C, T> {
    client: C,
    target: T,
    out: Way,
    back: Way,
    /// Which side ended first.
    first: Option<ClosedBy>,
    /// When a byte moved last.
    moved: Instant,
}

impl<C, T> Flow<C, T>
where
    C: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    /// Moves what can be moved; ready once both ways have ended.
    fn poll(&mut self, cx: &mut Context<'_>, tunnel: &Tunnel) -> Poll<ClosedBy> {
        let before = self.out.moved + self.back.moved;
        self.back.poll(cx, &mut self.target, &mut self.client);
        if self.back.is_broken() {
            // A target that is gone takes nothing either; what it said before is the client's.
            self.out.lose();
        }
        self.out.poll(cx, &mut self.client, &mut self.target);
        tunnel.bytes_out.store(self.out.moved, Relaxed);
        tunnel.bytes_in.store(self.back.moved, Relaxed);
        if self.out.moved + self.back.moved > before {
            self.moved = Instant::now();
        }
        if self.first.is_none() {
            self.first = self.ended_first();
        }
        // A client that takes nothing more and says nothing more is gone, whatever the target still has for it.
        let over = self.out.is_over() && (self.back.is_over() || self.back.is_lost());
        match self.out.is_broken() || over {
            true => Poll::Ready(self.first.unwrap_or(ClosedBy::Client)),
            false => Poll::Pending,
        }
    }

    fn ended_first(&self) -> Option<ClosedBy> {
        let (out, back) = (&self.out, &self.back);
        if out.has_ended() || back.is_lost() {
            Some(ClosedBy::Client)
        } else if back.has_ended() || out.is_lost() {
            Some(ClosedBy::Target)
        } else {
            None
        }
    }

    /// Until when silence is borne, and what it is called then.
    fn patience(&self, bounds: &Bounds, draining: bool) -> (Instant, ClosedBy) {
        let quiet = match (draining, self.first) {
            (true, _) => (DRAINING, ClosedBy::Drain),
            (false, Some(_)) => (HALF_CLOSED, ClosedBy::Idle),
            (false, None) => (bounds.idle, ClosedBy::Idle),
        };
        let quiet = (self.moved + quiet.0.min(bounds.idle), quiet.1);
        let blocked = [&self.out, &self.back].into_iter();
        let blocked = blocked.filter_map(|way| way.blocked);
        let blocked = blocked.map(|since| (since + bounds.stall, ClosedBy::Stalled));
        let ends = [quiet, (bounds.end, ClosedBy::Lifetime)];
        let ends = ends.into_iter().chain(blocked);
        ends.min_by_key(|(end, _)| *end).unwrap_or(quiet)
    }
}
