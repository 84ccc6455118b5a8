//! The tunnels that are open: who has them, how many, and the way to end one.

mod pace;
mod seat;

use std::{
    cmp::Ordering,
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::Context,
    time::SystemTime,
};

use futures_util::task::AtomicWaker;
use http::Method;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::pace::Pace;
pub(super) use self::seat::{Kind, Seat};
use super::relay::End;
use crate::{
    address::{JudgedAddr, Target},
    egress::Destination,
    identity::Caller,
    policy::{Parent, ProxyPermit, TunnelTls},
    subject::{Owner, Subject},
};

/// A tunnel that is open, as `tollgate tunnels` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTunnel {
    /// The `request_id` of its records.
    pub id: String,
    /// When it was asked for, RFC 3339.
    pub since: String,
    /// The tenant of its caller.
    pub tenant: String,
    /// The agent.
    pub agent: String,
    /// The user.
    pub user: String,
    /// `host:port`.
    pub target: String,
    /// The address that was dialled; `None` where a parent proxy resolves names.
    pub address: Option<IpAddr>,
    /// Bytes from the target so far.
    pub bytes_in: u64,
    /// Bytes to the target so far.
    pub bytes_out: u64,
    /// The rule that let it pass.
    pub rule: String,
}

/// Who is bounded: an agent with one user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Party {
    owner: Owner,
    agent: Arc<str>,
}

impl Party {
    pub(super) fn of(subject: &Subject) -> Self {
        Self {
            owner: subject.owner(),
            agent: subject.agent.clone(),
        }
    }
}

/// Everything about a tunnel that is looked at from elsewhere than its own task.
pub(super) struct Tunnel {
    pub(super) id: Uuid,
    pub(super) since: SystemTime,
    pub(super) caller: Caller,
    pub(super) target: Target,
    /// Path and query of a plain request, which the rules saw; its method is GET where it became a WebSocket.
    pub(super) shown: Option<(Method, Box<str>)>,
    /// Where it was connected to; empty before that, and where the address was not judged here.
    pub(super) address: OnceLock<IpAddr>,
    pub(super) tls: TunnelTls,
    /// The proxy that it goes through.
    pub(super) parent: Option<Parent>,
    pub(super) rule: Arc<str>,
    standing: Mutex<Standing>,
    pub(super) bytes_in: AtomicU64,
    pub(super) bytes_out: AtomicU64,
    draining: AtomicBool,
    end: OnceLock<End>,
    waker: AtomicWaker,
}

/// How long a judgement holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    generation: u64,
    /// Time alone may end it.
    is_timed: bool,
}

impl Standing {
    pub(super) fn new(caller: &Caller, permit: &ProxyPermit) -> Self {
        Self {
            generation: permit.generation(),
            is_timed: caller.expires().is_some() || permit.would_refuse().is_some(),
        }
    }

    /// Whether a policy of `generation` is to judge again. One older than the last that did has no say: whoever looks after
    /// tunnels may still hold it.
    fn is_due(self, generation: u64) -> bool {
        match self.generation.cmp(&generation) {
            Ordering::Less => true,
            Ordering::Equal => self.is_timed,
            Ordering::Greater => false,
        }
    }
}

impl Tunnel {
    pub(super) fn new(
        (id, since): (Uuid, SystemTime),
        caller: Caller,
        permit: &ProxyPermit,
        rule: Arc<str>,
    ) -> Self {
        Self {
            id,
            since,
            target: permit.target().clone(),
            shown: None,
            address: OnceLock::new(),
            tls: permit.tls(),
            parent: permit.parent().cloned(),
            rule,
            standing: Mutex::new(Standing::new(&caller, permit)),
            caller,
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            draining: AtomicBool::new(false),
            end: OnceLock::new(),
            waker: AtomicWaker::new(),
        }
    }

    /// The same for a plain request, which rules see more of.
    pub(super) fn showing(self, method: &Method, path: &str) -> Self {
        Self {
            shown: Some((method.clone(), path.into())),
            ..self
        }
    }

    /// Notes where it was connected to; that is a parent proxy where the destination has no addresses.
    pub(super) fn leads_to(&self, destination: &Destination, address: JudgedAddr) {
        let address = address.socket().ip();
        if destination.addresses.contains(&address) {
            // It is connected once.
            let _first = self.address.set(address);
        }
    }

    /// Ends it from outside; the first reason stands.
    pub(super) fn cut(&self, end: End) {
        if self.end.set(end).is_ok() {
            self.waker.wake();
        }
    }

    /// Why it was ended from outside, if it was; `cx` is woken when that changes.
    pub(super) fn ended(&self, cx: &Context<'_>) -> Option<End> {
        self.waker.register(cx.waker());
        self.end.get().cloned()
    }

    /// Whether it is to end as soon as it is quiet.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    pub(super) fn judged(&self, standing: Standing) {
        *self.standing() = standing;
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_due(&self, generation: u64) -> bool {
        self.standing().is_due(generation)
    }

    fn drain(&self) {
        self.draining.store(true, Relaxed);
        self.waker.wake();
    }

    fn shown(&self) -> OpenTunnel {
        let since = Timestamp::try_from(self.since).unwrap_or(Timestamp::UNIX_EPOCH);
        OpenTunnel {
            id: self.id.to_string(),
            since: since.to_string(),
            tenant: self.caller.tenant.to_string(),
            agent: self.caller.agent.to_string(),
            user: self.caller.user.to_string(),
            target: format!("{}:{}", self.target.host(), self.target.port()),
            address: self.address.get().copied(),
            bytes_in: self.bytes_in.load(Relaxed),
            bytes_out: self.bytes_out.load(Relaxed),
            rule: self.rule.to_string(),
        }
    }
}

/// All of them, whatever worker they belong to.
#[derive(Default)]
pub(super) struct Open(Mutex<Table>);

#[derive(Default)]
struct Table {
    tunnels: HashMap<Uuid, Arc<Tunnel>>,
    /// How many each caller has.
    callers: HashMap<Party, usize>,
    pace: Pace,
    /// Seats that are taken: tunnels, and those that are being opened.
    seats: usize,
    draining: bool,
}

impl Open {
    /// Those that a policy of `generation` has not judged, or that time may end.
    pub(super) fn due(&self, generation: u64) -> Vec<Arc<Tunnel>> {
        let table = self.lock();
        let due = table.tunnels.values().filter(|it| it.is_due(generation));
        due.cloned().collect()
    }

    /// Forgets how fast callers were that have opened none lately.
    pub(super) fn forget_callers(&self) {
        self.lock().pace.forget();
    }

    pub(super) fn drain(&self) {
        let mut table = self.lock();
        table.draining = true;
        table.tunnels.values().for_each(|tunnel| tunnel.drain());
    }

    pub(super) fn list(&self) -> Vec<OpenTunnel> {
        let mut tunnels: Vec<_> = self.lock().tunnels.values().cloned().collect();
        tunnels.sort_by_key(|tunnel| tunnel.id);
        tunnels.iter().map(|tunnel| tunnel.shown()).collect()
    }

    fn add(&self, tunnel: &Arc<Tunnel>) {
        let mut table = self.lock();
        if table.draining {
            tunnel.drain();
        }
        table.tunnels.insert(tunnel.id, tunnel.clone());
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_policies_judge_again_and_older_ones_never() {
        for (is_timed, due) in [(false, [false, false, true]), (true, [false, true, true])] {
            let standing = Standing {
                generation: 2,
                is_timed,
            };
            assert_eq!([1, 2, 3].map(|generation| standing.is_due(generation)), due);
        }
    }
}
