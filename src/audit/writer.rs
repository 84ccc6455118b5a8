//! The writer thread: seals, writes and syncs a group at a time, and gets over a disk that fails.

use std::{io, sync::Arc, time::Duration};

use super::{
    chain::Head,
    journal::Unavailable,
    line,
    output::Output,
    queue::{Group, KEEP, Queue},
    record::{OutcomeKind, Record},
};
use crate::{
    clock::Clock,
    refusal::Code,
    telemetry::{Counter, Gauge},
};

pub(super) struct Writer {
    pub(super) output: Output,
    pub(super) queue: Arc<Queue>,
    pub(super) clock: Arc<dyn Clock>,
    /// The last record on disk.
    pub(super) head: Head,
    pub(super) retry: Duration,
    pub(super) healthy: Gauge,
    pub(super) syncs: Counter,
    /// The lines of the group at hand.
    pub(super) lines: Vec<u8>,
}

/// Releases everyone who waits, also when the writer panics.
struct Ended(Arc<Queue>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended(std::thread::panicking());
    }
}

impl Writer {
    /// Runs until the journal is closed and everything is on disk.
    pub(super) fn run(self) {
        let _ended = Ended(self.queue.clone());
        self.work();
    }

    /// Takes the writer, so that the folder is free for others before anyone hears that it ended.
    fn work(mut self) {
        let mut group = Group::default();
        while let Some(next) = self.queue.next(group) {
            group = next;
            match self.commit(&group) {
                Ok(()) => {
                    self.queue.written(&self.head);
                    group.tell(&Ok(()));
                }
                Err(error) => self.get_over(&mut group, &error),
            }
        }
    }

    /// Seals, writes and syncs `group`; on failure the chain stays where it was.
    fn commit(&mut self, group: &Group) -> io::Result<()> {
        let mut head = self.head.clone();
        self.lines.clear();
        // A burst does not hold its memory for ever.
        self.lines.shrink_to(KEEP);
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &group.bodies) {
            head.seal(&group.bodies[start..end], &mut self.lines);
            start = end + 1;
        }
        self.output.append(self.head.seq + 1, &self.lines)?;
        self.syncs.inc();
        self.head = head;
        Ok(())
    }

    /// Refuses everything until `group` could be written after all, with a record of the gap behind it. Whoever waited
    /// for these records was told that they are not kept; keeping them nevertheless says more than leaving them out.
    fn get_over(&mut self, group: &mut Group, error: &io::Error) {
        let failure = Unavailable(error.to_string());
        tracing::error!(%error, "records cannot be written; until they can, calls are refused as `audit.on_failure` says");
        self.healthy.set(0);
        group.merge(self.queue.failed(failure.clone()));
        group.tell(&Err(failure));
        loop {
            let closing = self.queue.pause(self.retry);
            let mut gap = Record::lifecycle(self.clock.now(), "audit.recovered");
            gap = gap.ended(OutcomeKind::Failed, Some(Code::RecordUnavailable));
            let gap = line::body(&gap);
            group.push(&gap);
            match self.commit(group) {
                Ok(()) => break,
                Err(error) if closing => {
                    let records = group.records - 1;
                    tracing::error!(%error, records, "records are lost: they cannot be written, and the journal closes");
                    return;
                }
                Err(_) => group.pop(&gap),
            }
        }
        self.queue.written(&self.head);
        self.healthy.set(1);
        tracing::info!("records are written again");
    }
}
