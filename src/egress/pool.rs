//! Idle connections of one worker thread; each may serve only the user, policy and address it was opened for.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ahash::RandomState;
use http::HeaderName;
use tokio::time::Instant;

use super::{Fields, exchange::Live, send::Place};
use crate::{
    address::{JudgedAddr, Leg, Target},
    policy::ProxyPermit,
    subject::Owner,
};

/// The most idle connections under one key: half of the room. Where many agents of one user call at once, fewer would
/// have most calls open a connection and close it again.
const MAX_PER_KEY: usize = 512;
/// The most idle connections in all.
const MAX_IDLE: usize = 1024;
/// How long a connection may be idle: common servers close after 5 s, and a request must not meet that close.
const IDLE: Duration = Duration::from_secs(4);
/// The longest that a peer's `Keep-Alive` may extend that to.
const MAX_KEEP: Duration = Duration::from_secs(60);
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
/// How often parking a connection looks for expired ones.
const SWEEP: Duration = Duration::from_secs(1);

/// What two requests must have in common to share a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    owner: Owner,
    /// What it is for: what goes to a server never shares a connection with what goes to its authorization server.
    leg: Leg,
    /// The digest of the extra roots that were trusted; all zero for the forward proxy, which verifies nothing.
    trust: [u8; 32],
    generation: u64,
    target: Target,
    address: JudgedAddr,
}

/// Equality looks at everything; of what tells keys apart, only the words that differ much are worth hashing.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.leg {
            Leg::Server(name) => name.hash(state),
            Leg::OAuth(_) | Leg::Proxy | Leg::Identity | Leg::Webhook => {
                self.target.host().hash(state);
            }
        }
        self.owner.user.hash(state);
    }
}

impl Key {
    pub(super) fn new(place: &Place<'_>, address: JudgedAddr) -> Self {
        Self {
            owner: place.owner.clone(),
            leg: place.leg.clone(),
            trust: place.trust.digest,
            generation: place.generation,
            target: place.endpoint.target().clone(),
            address,
        }
    }

    /// For a plain request of the forward proxy.
    pub(super) fn of_proxy(permit: &ProxyPermit, address: JudgedAddr) -> Self {
        Self {
            owner: permit.owner().clone(),
            leg: permit.leg(),
            trust: [0; 32],
            generation: permit.generation(),
            target: permit.target().clone(),
            address,
        }
    }

    /// Where the connection leads.
    pub(super) fn address(&self) -> JudgedAddr {
        self.address
    }

    /// The same connection to another address of the answer.
    pub(super) fn at(&mut self, address: JudgedAddr) {
        self.address = address;
    }
}

/// Where idle connections wait.
#[derive(Clone, Default)]
pub(super) struct Pool(Arc<Mutex<Parked>>);

#[derive(Default)]
struct Parked {
    by_key: HashMap<Key, Vec<Idle>, RandomState>,
    total: usize,
    oldest: u64,
    swept: Option<Instant>,
}

struct Idle {
    live: Box<Live>,
    until: Instant,
}

impl Pool {
    /// An idle connection, the last parked first. Whether it still stands shows when it is used: one that its peer has
    /// closed, or spoken on unasked, gives the request back.
    pub(super) fn take(&self, key: &Key, now: Instant) -> Option<Box<Live>> {
        loop {
            let idle = self.lock().pop(key)?;
            if now < idle.until {
                return Some(idle.live);
            }
        }
    }

    /// Keeps a reusable connection for at most `keep`.
    pub(super) fn park(&self, key: Key, live: Box<Live>, keep: Duration) {
        let now = Instant::now();
        let mut parked = self.lock();
        if keep.is_zero() || key.generation < parked.oldest {
            return;
        }
        let due = parked.swept.is_none_or(|swept| now >= swept + SWEEP);
        if due || parked.total >= MAX_IDLE {
            parked.sweep(now);
        }
        if parked.total >= MAX_IDLE {
            return;
        }
        let idle = parked.by_key.entry(key).or_default();
        if idle.len() < MAX_PER_KEY {
            idle.push(Idle {
                live,
                until: now + keep,
            });
            parked.total += 1;
        }
    }

    pub(super) fn retire(&self, generation: u64) {
        let mut parked = self.lock();
        parked.oldest = parked.oldest.max(generation);
        parked.by_key.retain(|key, _| key.generation >= generation);
        parked.count();
    }

    pub(super) fn sweep(&self) {
        self.lock().sweep(Instant::now());
    }

    pub(super) fn idle(&self) -> usize {
        self.lock().total
    }

    fn lock(&self) -> MutexGuard<'_, Parked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parked {
    fn pop(&mut self, key: &Key) -> Option<Idle> {
        let idle = self.by_key.get_mut(key)?.pop()?;
        self.total -= 1;
        Some(idle)
    }

    fn sweep(&mut self, now: Instant) {
        self.by_key.retain(|_, idle| {
            idle.retain(|idle| now < idle.until);
            !idle.is_empty()
        });
        self.swept = Some(now);
        self.count();
    }

    fn count(&mut self) {
        self.total = self.by_key.values().map(Vec::len).sum();
    }
}

/// How long the connection of this response may be idle: a second less than its peer's `Keep-Alive: timeout=N`.
pub(super) fn keep_for(headers: &Fields) -> Duration {
    let announced = headers
        .get(&KEEP_ALIVE)
        .and_then(|value| std::str::from_utf8(value).ok())
        .and_then(|value| {
            value
                .split(',')
                .find_map(|part| part.trim().strip_prefix("timeout="))
        })
        .and_then(|seconds| seconds.trim().parse::<u32>().ok());
    announced.map_or(IDLE, |seconds| {
        Duration::from_secs(u64::from(seconds))
            .saturating_sub(Duration::from_secs(1))
            .min(MAX_KEEP)
    })
}
