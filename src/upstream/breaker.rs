//! Servers that cannot be reached are left alone for a while: who asks is told so at once, instead of waiting to hear it
//! again, and now and then one request tries.
//!
//! Only what the network shows counts. That no connection comes about is the same for everyone. That a server takes a
//! request and does not begin to answer may be the request's doing, so it counts for the user alone who sent it: nobody
//! can shut a server for others. Answers of any kind, refusals, cancellations and ends of calls do not count.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::{Error, Upstream};
use crate::{
    egress::{self, Failed, Inbound},
    policy::{Permit, Server, Snapshot},
    subject::Owner,
    telemetry::Metrics,
};

/// So many failures in a row open a circuit,
const FAILURES: usize = 5;
/// if they came within so long.
const WINDOW: Duration = Duration::from_secs(30);
/// How long a circuit is open before the first try; each that fails doubles it.
const FIRST: Duration = Duration::from_secs(1);
/// The longest between two tries.
const LONGEST: Duration = Duration::from_secs(30);
/// Circuits that are kept in mind at most.
const KEPT: usize = 4_096;

/// The circuits that do not work, or did not lately; shared by all workers.
#[derive(Debug, Default)]
pub struct Breakers {
    troubled: Mutex<HashMap<Key, Trouble>>,
    /// How many those are: nearly always none, and then nothing is locked.
    count: AtomicUsize,
    metrics: Arc<Metrics>,
}

/// A server, for everyone or for one user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    server: Arc<str>,
    owner: Option<Owner>,
}

#[derive(Debug)]
struct Trouble {
    server: Arc<Server>,
    /// The last failures in a row, at most [`FAILURES`].
    failed: VecDeque<Instant>,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    since: Instant,
    until: Instant,
    backoff: Duration,
    /// When the request began that tries now.
    trying: Option<Instant>,
}

/// A circuit that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCircuit {
    /// The server.
    pub server: Arc<str>,
    /// The user for whom it is open; `None` for everyone.
    pub user: Option<Arc<str>>,
    /// How long it has been failing.
    pub since: Duration,
    /// How long until the next try; zero while one is made, or due.
    pub retry: Duration,
}

/// Leave to ask a server. If it is one to try, the next may try once this is dropped.
#[derive(Debug)]
pub struct Leave {
    _tries: Option<Try>,
}

#[derive(Debug)]
struct Try {
    breakers: Arc<Breakers>,
    keys: [Key; 2],
    began: Instant,
}

impl Drop for Try {
    fn drop(&mut self) {
        let mut troubled = self.breakers.lock();
        for key in &self.keys {
            let open = troubled
                .get_mut(key)
                .and_then(|trouble| trouble.open.as_mut());
            if let Some(open) = open.filter(|open| open.trying == Some(self.began)) {
                open.trying = None;
            }
        }
    }
}

impl Upstream {
    /// Leave to ask the server of `permit`, unless it has just proved out of reach; to be kept until it has answered.
    pub fn admit(&self, permit: &Permit) -> Result<Leave, Error> {
        self.breakers.admit(permit)
    }
}

impl Breakers {
    /// Every circuit works.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            ..Self::default()
        }
    }

    /// Takes up another policy: what is known of servers that it changed or left out is forgotten.
    pub fn take_up(&self, policy: &Snapshot) {
        let mut troubled = self.lock();
        troubled.retain(|key, trouble| {
            let same = policy.servers.get(&key.server) == Some(&trouble.server);
            if !same {
                self.metrics.server_gone(&key.server);
            }
            same
        });
        self.count.store(troubled.len(), Ordering::Relaxed);
    }

    /// The circuits that are open, by server and user.
    pub fn open(&self) -> Vec<OpenCircuit> {
        let now = Instant::now();
        let troubled = self.lock();
        let open = troubled.iter().filter_map(|(key, trouble)| {
            let open = trouble.open.as_ref()?;
            Some(open.told(key, now))
        });
        let mut all: Vec<_> = open.collect();
        all.sort_by(|one, two| (&one.server, &one.user).cmp(&(&two.server, &two.user)));
        all
    }

    fn admit(self: &Arc<Self>, permit: &Permit) -> Result<Leave, Error> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return Ok(Leave { _tries: None });
        }
        let now = Instant::now();
        let keys = keys(permit);
        let mut troubled = self.lock();
        let mut tries = false;
        for key in &keys {
            let trouble = troubled.get(key).filter(|trouble| trouble.is_of(permit));
            let Some(open) = trouble.and_then(|trouble| trouble.open.as_ref()) else {
                continue;
            };
            if !open.may_try(now, patience(key, permit)) {
                let OpenCircuit { since, retry, .. } = open.told(key, now);
                let server = key.server.clone();
                return Err(Error::Failing {
                    server,
                    since,
                    retry,
                });
            }
            tries = true;
        }
        if !tries {
            return Ok(Leave { _tries: None });
        }
        for key in &keys {
            let open = troubled.get_mut(key).and_then(|found| found.open.as_mut());
            if let Some(open) = open {
                open.trying = Some(now);
            }
        }
        let tries = Try {
            breakers: self.clone(),
            keys,
            began: now,
        };
        Ok(Leave {
            _tries: Some(tries),
        })
    }

    /// Notes what the network showed.
    pub(super) fn note(&self, permit: &Permit, sent: &Result<Inbound, Failed>) {
        // Nearly always there is nothing to note, and then no keys are made.
        if sent.is_ok() && self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let [all, one] = keys(permit);
        match sent.as_ref().map_err(|failed| &failed.error) {
            Err(
                egress::Error::Connect { .. }
                | egress::Error::ConnectTimeout { .. }
                | egress::Error::Tls { .. },
            ) => self.failed(all, permit),
            Err(egress::Error::FirstByteTimeout { .. }) => self.failed(one, permit),
            Ok(_) => self.worked(&[all, one]),
            Err(error) if error.came_from_server() => self.worked(&[all, one]),
            Err(_) => {}
        }
    }

    fn worked(&self, keys: &[Key]) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut troubled = self.lock();
        for key in keys {
            let was_open = troubled.remove(key).is_some_and(|was| was.open.is_some());
            if was_open {
                self.show(key, false);
                tracing::info!(server = %key.server, "the server answers again");
            }
        }
        self.count.store(troubled.len(), Ordering::Relaxed);
    }

    fn failed(&self, key: Key, permit: &Permit) {
        let now = Instant::now();
        let mut troubled = self.lock();
        if troubled.len() >= KEPT {
            troubled.retain(|_, trouble| trouble.matters(now));
        }
        if troubled.len() >= KEPT && !troubled.contains_key(&key) {
            return;
        }
        let trouble = troubled
            .entry(key.clone())
            .or_insert_with(|| Trouble::of(permit));
        if !trouble.is_of(permit) {
            *trouble = Trouble::of(permit);
        }
        if trouble.failed(now) {
            self.show(&key, true);
            tracing::warn!(server = %key.server, for_all = key.owner.is_none(), "the server is out of reach; requests to it are refused");
        }
        self.count.store(troubled.len(), Ordering::Relaxed);
    }

    fn show(&self, key: &Key, open: bool) {
        if key.owner.is_none() {
            self.metrics.server_open(&key.server, open);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Trouble>> {
        self.troubled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The circuit that all share, and the user's own.
fn keys(permit: &Permit) -> [Key; 2] {
    let server = &permit.server().name;
    [None, Some(permit.owner().clone())].map(|owner| Key {
        server: server.clone(),
        owner,
    })
}

/// How long a try keeps others from trying. What it is about has shown by then, however long its call may run.
fn patience(key: &Key, permit: &Permit) -> Duration {
    let limits = &permit.server().limits;
    match key.owner {
        None => limits.connect,
        Some(_) => limits.connect + limits.first_byte,
    }
}

impl Trouble {
    fn of(permit: &Permit) -> Self {
        Self {
            server: permit.server().clone(),
            failed: VecDeque::with_capacity(FAILURES),
            open: None,
        }
    }

    fn is_of(&self, permit: &Permit) -> bool {
        self.server == *permit.server()
    }

    fn matters(&self, now: Instant) -> bool {
        let last = self.failed.back();
        self.open.is_some() || last.is_some_and(|last| now - *last <= WINDOW)
    }

    /// One more failure; true where it opens the circuit.
    fn failed(&mut self, now: Instant) -> bool {
        if let Some(open) = &mut self.open {
            // Others that fail now began before it was open.
            if open.trying.take().is_some() {
                open.backoff = (open.backoff * 2).min(LONGEST);
                open.until = now + open.backoff;
            }
            return false;
        }
        if self.failed.len() == FAILURES {
            self.failed.pop_front();
        }
        self.failed.push_back(now);
        let first = self.failed[0];
        let opens = self.failed.len() == FAILURES && now - first <= WINDOW;
        if opens {
            self.open = Some(Open {
                since: first,
                until: now + FIRST,
                backoff: FIRST,
                trying: None,
            });
        }
        opens
    }
}

impl Open {
    fn may_try(&self, now: Instant, patience: Duration) -> bool {
        now >= self.until && self.trying.is_none_or(|began| now >= began + patience)
    }

    fn told(&self, key: &Key, now: Instant) -> OpenCircuit {
        OpenCircuit {
            server: key.server.clone(),
            user: key.owner.as_ref().map(|owner| owner.user.clone()),
            since: now - self.since,
            retry: self.until.saturating_duration_since(now),
        }
    }
}

#[cfg(test)]
mod tests;
