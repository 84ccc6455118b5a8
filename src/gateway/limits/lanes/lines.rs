//! Lines of calls: under each key so many have a seat at once, and so many more wait for one in fair order.

use std::{
    collections::VecDeque,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ahash::RandomState;
use dashmap::{DashMap, Entry};
use tokio::sync::oneshot;

use crate::{subject::Subject, telemetry::Gauge};

/// What a key may have at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Calls with a seat.
    pub(super) running: usize,
    /// Calls that wait for one. With those that stepped aside there are never more in all.
    pub(super) waiting: usize,
}

/// Every line that is not empty, shared by all workers.
pub(super) struct Lines<K: Key> {
    open: DashMap<K, Line<K>, RandomState>,
    draining: AtomicBool,
    seated: Gauge,
    waiting: Gauge,
}

/// What lines are told apart by; cheap to clone.
pub(in crate::gateway) trait Key: Clone + Eq + Hash {}

impl<T: Clone + Eq + Hash> Key for T {}

struct Line<K: Key> {
    /// That of the last call that came: another policy may have changed it.
    running: usize,
    seated: usize,
    /// Of those that are seated, how many wait for something else than the server.
    aside: usize,
    waiting: VecDeque<Waiter<K>>,
    /// The round whose calls get seats now. Each caller has one call in each round.
    round: u64,
}

struct Waiter<K: Key> {
    caller: Arc<Subject>,
    round: u64,
    seat: oneshot::Sender<Seat<K>>,
}

/// How a call gets into a line.
pub(super) enum Joined<K: Key> {
    /// It runs.
    Seated(Seat<K>),
    /// It waits.
    Queued(Turn<K>),
    /// There is no room for it.
    Full,
}

impl<K: Key> Lines<K> {
    /// No call yet; tells the gauges how many have a seat, and how many wait.
    pub(super) fn new(seated: Gauge, waiting: Gauge) -> Self {
        Self {
            open: DashMap::default(),
            draining: AtomicBool::new(false),
            seated,
            waiting,
        }
    }

    /// A seat for a call of `caller`, a place in the line, or nothing.
    pub(super) fn join(
        self: &Arc<Self>,
        key: &K,
        caller: &Arc<Subject>,
        bounds: Bounds,
    ) -> Joined<K> {
        let mut line = self.open.entry(key.clone()).or_default();
        line.running = bounds.running;
        if !line.has_room(bounds.running + bounds.waiting) {
            return Joined::Full;
        }
        if line.waiting.is_empty() && line.is_free() {
            line.seated += 1;
            drop(line);
            return Joined::Seated(self.seat(key));
        }
        if self.draining.load(Ordering::Acquire) {
            return Joined::Full;
        }
        let turn = line.queue(caller, &self.waiting);
        drop(line);
        // Only where another policy has just set more seats up.
        self.change(key, |_| ());
        Joined::Queued(turn)
    }

    /// Sends everyone away who waits, now and from now on: the process drains.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        self.open
            .iter_mut()
            .for_each(|mut line| line.waiting.clear());
    }

    /// How many calls have a seat, of all keys.
    pub(super) fn seated(&self) -> usize {
        usize::try_from(self.seated.get()).unwrap_or_default()
    }

    fn seat(self: &Arc<Self>, key: &K) -> Seat<K> {
        self.seated.inc();
        Seat(Spot {
            lines: self.clone(),
            key: key.clone(),
        })
    }

    /// Changes a line, and gives seats that are free then to those who wait.
    fn change(self: &Arc<Self>, key: &K, change: impl FnOnce(&mut Line<K>)) {
        let mut next = self.with(key, |line| {
            change(line);
            line.admit()
        });
        while let Some(waiter) = next {
            // One that was given up this very moment is dropped here, with its seat.
            drop(waiter.seat.send(self.seat(key)));
            next = self.with(key, Line::admit);
        }
    }

    fn with<T>(&self, key: &K, change: impl FnOnce(&mut Line<K>) -> Option<T>) -> Option<T> {
        let Entry::Occupied(mut line) = self.open.entry(key.clone()) else {
            return None;
        };
        let found = change(line.get_mut());
        if line.get().is_over() {
            line.remove();
        }
        found
    }
}

impl<K: Key> Default for Line<K> {
    fn default() -> Self {
        Self {
            running: 0,
            seated: 0,
            aside: 0,
            waiting: VecDeque::new(),
            round: 0,
        }
    }
}

impl<K: Key> Line<K> {
    fn is_free(&self) -> bool {
        self.seated.saturating_sub(self.aside) < self.running
    }

    fn is_over(&self) -> bool {
        self.seated == 0 && self.aside == 0 && self.waiting.is_empty()
    }

    /// Whether one more may come; those that were given up while they waited count no more.
    fn has_room(&mut self, most: usize) -> bool {
        if self.seated + self.waiting.len() >= most {
            self.waiting.retain(|waiter| !waiter.seat.is_closed());
        }
        self.seated + self.waiting.len() < most
    }

    /// Callers take turns: nobody's second call goes before another's first. Calls of one caller keep their order.
    fn queue(&mut self, caller: &Arc<Subject>, waiting: &Gauge) -> Turn<K> {
        let mut before = self.waiting.iter().rev();
        let last = before.find(|waiter| is_same(&waiter.caller, caller));
        let round = last.map_or(self.round, |last| last.round) + 1;
        let place = self.waiting.partition_point(|waiter| waiter.round <= round);
        let (seat, turn) = oneshot::channel();
        let waiter = Waiter {
            caller: caller.clone(),
            round,
            seat,
        };
        self.waiting.insert(place, waiter);
        waiting.inc();
        Turn {
            seat: turn,
            waiting: waiting.clone(),
        }
    }

    /// The next who waits, where a seat is free for it.
    fn admit(&mut self) -> Option<Waiter<K>> {
        while self.is_free() {
            let waiter = self.waiting.pop_front()?;
            self.round = waiter.round;
            if !waiter.seat.is_closed() {
                self.seated += 1;
                return Some(waiter);
            }
        }
        None
    }
}

fn is_same(one: &Subject, other: &Subject) -> bool {
    (&one.tenant, &one.user, &one.agent) == (&other.tenant, &other.user, &other.agent)
}

/// A call's place among those that run, given up when dropped.
pub(in crate::gateway) struct Seat<K: Key>(Spot<K>);

impl<K: Key> Seat<K> {
    /// Where it is, for a call that may have to step aside.
    pub(super) fn spot(&self) -> Spot<K> {
        self.0.clone()
    }
}

impl<K: Key> Drop for Seat<K> {
    fn drop(&mut self) {
        let Spot { lines, key } = &self.0;
        lines.seated.dec();
        lines.change(key, |line| line.seated -= 1);
    }
}

/// Where a call has its seat.
pub(super) struct Spot<K: Key> {
    lines: Arc<Lines<K>>,
    key: K,
}

impl<K: Key> Spot<K> {
    /// Leaves the seat to another until what this returns is dropped. The call then goes on at once, though others may
    /// have all seats: it still counts among all that there may be.
    pub(super) fn step_aside(&self) -> Aside<K> {
        self.lines.change(&self.key, |line| line.aside += 1);
        Aside(self.clone())
    }
}

impl<K: Key> Clone for Spot<K> {
    fn clone(&self) -> Self {
        Self {
            lines: self.lines.clone(),
            key: self.key.clone(),
        }
    }
}

/// A seated call that waits for somebody else than the server.
pub(super) struct Aside<K: Key>(Spot<K>);

impl<K: Key> Drop for Aside<K> {
    fn drop(&mut self) {
        self.0.lines.change(&self.0.key, |line| line.aside -= 1);
    }
}

/// A place in the line, given up when dropped.
pub(in crate::gateway) struct Turn<K: Key> {
    seat: oneshot::Receiver<Seat<K>>,
    waiting: Gauge,
}

impl<K: Key> Turn<K> {
    /// The seat, once it is this call's turn; `None` where the process drains before.
    pub(super) async fn come(&mut self) -> Option<Seat<K>> {
        (&mut self.seat).await.ok()
    }
}

impl<K: Key> Drop for Turn<K> {
    fn drop(&mut self) {
        self.waiting.dec();
    }
}

#[cfg(test)]
mod tests;
