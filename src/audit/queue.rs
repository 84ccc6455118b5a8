//! What waits for the writer: bounded in records and bytes, handed over in whole groups.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::oneshot;

use super::{
    chain::Head,
    journal::{Options, Unavailable},
};
use crate::telemetry::Gauge;

/// Bytes of memory that are kept from one group to the next.
pub(super) const KEEP: usize = 256 << 10;

/// Records that reach the disk together, and who waits for it.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Bodies, each ended by a newline.
    pub(super) bodies: Vec<u8>,
    pub(super) records: usize,
    pub(super) waiters: Vec<oneshot::Sender<Result<(), Unavailable>>>,
}

impl Group {
    /// Adds a record.
    pub(super) fn push(&mut self, body: &[u8]) {
        self.bodies.extend_from_slice(body);
        self.bodies.push(b'\n');
        self.records += 1;
    }

    /// Tells everyone who waits, and forgets them.
    pub(super) fn tell(&mut self, result: &Result<(), Unavailable>) {
        for waiter in self.waiters.drain(..) {
            // The receiver is gone where a call was given up; its record is kept all the same.
            drop(waiter.send(result.clone()));
        }
    }

    /// Takes the last record back, whose body this is.
    pub(super) fn pop(&mut self, body: &[u8]) {
        self.bodies.truncate(self.bodies.len() - body.len() - 1);
        self.records -= 1;
    }

    /// Empty again, with its memory kept unless a burst had made it large.
    fn emptied(mut self) -> Self {
        self.bodies.clear();
        self.bodies.shrink_to(KEEP);
        self.records = 0;
        self.waiters.clear();
        self
    }

    /// Takes over what `other` holds.
    pub(super) fn merge(&mut self, other: Self) {
        self.bodies.extend_from_slice(&other.bodies);
        self.records += other.records;
        self.waiters.extend(other.waiters);
    }
}

/// What the writer waits for; a submitter wakes it only then, so that a busy writer costs no system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    Nothing,
    AnyRecord,
    UrgentRecord,
}

/// Everything behind the lock; held for a copy of one line, never over I/O.
#[derive(Debug)]
struct State {
    pending: Group,
    /// Someone waits for the disk, or half the room is used.
    urgent: bool,
    awaits: Awaits,
    /// Why records cannot be kept now.
    failure: Option<Unavailable>,
    closing: bool,
    /// The last record on disk.
    head: Head,
    /// Who waits for the end; `None` once the writer has ended.
    closers: Option<Vec<oneshot::Sender<()>>>,
}

/// The way from callers to the writer.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    records: usize,
    bytes: usize,
    linger: Duration,
    depth: Gauge,
}

impl Queue {
    /// An empty queue after `head`, within the bounds of `options`, that shows how much waits on `depth`.
    pub(super) fn new(options: &Options, head: Head, depth: Gauge) -> Self {
        let state = State {
            pending: Group::default(),
            urgent: false,
            awaits: Awaits::Nothing,
            failure: None,
            closing: false,
            head,
            closers: Some(Vec::new()),
        };
        Self {
            state: Mutex::new(state),
            wake: Condvar::new(),
            records: options.queue_records,
            bytes: options.queue_bytes,
            linger: options.linger,
            depth,
        }
    }

    /// Why records cannot be kept now, how many wait, and the last one on disk.
    pub(super) fn health(&self) -> (Option<Unavailable>, usize, Head) {
        let state = self.lock();
        (
            state.failure.clone(),
            state.pending.records,
            state.head.clone(),
        )
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No step under the lock can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a record that nobody waits for would be taken now.
    pub(super) fn admits(&self) -> Result<(), Unavailable> {
        self.room(&self.lock(), 0, false)
    }

    /// Takes a record; `waiter` is told when it is on disk.
    pub(super) fn submit(
        &self,
        body: &[u8],
        waiter: Option<oneshot::Sender<Result<(), Unavailable>>>,
    ) -> Result<(), Unavailable> {
        let mut state = self.lock();
        self.room(&state, body.len() + 1, waiter.is_some())?;
        state.pending.push(body);
        state.urgent |= waiter.is_some()
            || state.pending.records > self.records / 2
            || state.pending.bodies.len() > self.bytes / 2;
        state.pending.waiters.extend(waiter);
        self.depth.set(state.pending.records as i64);
        let wake = match state.awaits {
            Awaits::Nothing => false,
            Awaits::AnyRecord => true,
            Awaits::UrgentRecord => state.urgent,
        };
        if wake {
            state.awaits = Awaits::Nothing;
        }
        drop(state);
        if wake {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// A quarter of the room is only for records that someone waits for, so that reads never crowd out the outcome of a
    /// side effect.
    fn room(&self, state: &State, bytes: usize, awaited: bool) -> Result<(), Unavailable> {
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        if state.closing {
            return Err(Unavailable("the journal is closed".to_owned()));
        }
        let share = |room: usize| if awaited { room } else { room - room / 4 };
        let bytes = state.pending.bodies.len() + bytes;
        if state.pending.records >= share(self.records) || bytes > share(self.bytes) {
            return Err(Unavailable("too many records wait for the disk".to_owned()));
        }
        Ok(())
    }

    /// The next group for the writer: at once where someone waits for it, else when it has lingered. `None` is the end.
    /// The memory of the group before is used again.
    pub(super) fn next(&self, before: Group) -> Option<Group> {
        let empty = before.emptied();
        let mut state = self.lock();
        if state.pending.records == 0 && !state.closing {
            state.awaits = Awaits::AnyRecord;
            let idle = |state: &mut State| state.pending.records == 0 && !state.closing;
            let woken = self.wake.wait_while(state, idle);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        if !state.urgent && !state.closing {
            state.awaits = Awaits::UrgentRecord;
            let waited = self
                .wake
                .wait_timeout_while(state, self.linger, |state| !state.urgent && !state.closing);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.awaits = Awaits::Nothing;
        state.urgent = false;
        self.depth.set(0);
        (state.pending.records > 0).then(|| std::mem::replace(&mut state.pending, empty))
    }

    /// Lets nothing in until [`Queue::written`], and returns what came in since the last group.
    pub(super) fn failed(&self, failure: Unavailable) -> Group {
        let mut state = self.lock();
        state.failure = Some(failure);
        state.urgent = false;
        self.depth.set(0);
        std::mem::take(&mut state.pending)
    }

    /// Waits for `pause`, or until the journal is closed; tells whether it is.
    pub(super) fn pause(&self, pause: Duration) -> bool {
        let waited = self
            .wake
            .wait_timeout_while(self.lock(), pause, |state| !state.closing);
        waited.unwrap_or_else(PoisonError::into_inner).0.closing
    }

    /// Records are on disk up to `head`.
    pub(super) fn written(&self, head: &Head) {
        let mut state = self.lock();
        state.head.clone_from(head);
        state.failure = None;
    }

    /// Lets nothing more in, and has the writer finish; `closer` is dropped when it has.
    pub(super) fn close(&self, closer: Option<oneshot::Sender<()>>) {
        let mut state = self.lock();
        state.closing = true;
        if let Some(closers) = &mut state.closers {
            closers.extend(closer);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// The writer is gone: nobody may wait for it any more.
    pub(super) fn ended(&self, panicked: bool) {
        let mut state = self.lock();
        if panicked {
            state.failure = Some(Unavailable("the record writer has stopped".to_owned()));
        }
        state.closing = true;
        state.pending = Group::default();
        state.closers = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_leave_room_for_what_someone_waits_for() {
        let mut options = Options::new("unused");
        options.queue_records = 8;
        options.queue_bytes = 100;
        let queue = Queue::new(&options, Head::start(), Gauge::default());
        for _ in 0..6 {
            queue.submit(b"read", None).expect("room");
        }
        let full = Err(Unavailable("too many records wait for the disk".to_owned()));
        assert_eq!(queue.submit(b"read", None), full);
        assert_eq!(queue.admits(), full);
        let (waiter, _kept) = oneshot::channel();
        assert_eq!(
            queue.submit(&[b'x'; 70], Some(waiter)),
            full,
            "over the bytes"
        );
        for _ in 0..2 {
            let (waiter, _kept) = oneshot::channel();
            queue.submit(b"outcome", Some(waiter)).expect("room");
        }
        let (waiter, _kept) = oneshot::channel();
        assert_eq!(queue.submit(b"outcome", Some(waiter)), full);
        let group = queue.next(Group::default()).expect("eight records");
        assert_eq!(
            (group.records, group.bodies.len(), group.waiters.len()),
            (8, 46, 2)
        );
        queue.submit(b"read", None).expect("room again");
    }

    #[test]
    fn after_a_failure_nothing_gets_in_until_it_is_over() {
        let queue = Queue::new(&Options::new("unused"), Head::start(), Gauge::default());
        queue.submit(b"late", None).expect("room");
        let failure = Unavailable("no space".to_owned());
        assert_eq!(queue.failed(failure.clone()).records, 1);
        assert_eq!(queue.submit(b"read", None), Err(failure));
        queue.written(&Head::start());
        queue.submit(b"read", None).expect("kept again");
    }

    #[test]
    fn nobody_waits_for_a_writer_that_is_gone() {
        let queue = Queue::new(&Options::new("unused"), Head::start(), Gauge::default());
        let (waiter, mut kept) = oneshot::channel();
        queue.submit(b"intent", Some(waiter)).expect("room");
        queue.ended(true);
        assert_eq!(kept.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        let stopped = Unavailable("the record writer has stopped".to_owned());
        assert_eq!(queue.submit(b"read", None), Err(stopped));
        let (closer, mut closed) = oneshot::channel();
        queue.close(Some(closer));
        assert_eq!(closed.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }
}
