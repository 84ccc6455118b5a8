//! The writer thread: seals, writes and syncs a group at a time, and gets over a disk that fails.

use std::{io, sync::Arc, time::Duration};

use super::{
    chain::Head,
    journal::Unavailable,
    line,
    output::Output,
    queue::{Group, Queue},
    record::{OutcomeKind, Record},
};
use crate::{clock::Clock, refusal::Code, telemetry::Gauge};

pub(super) struct Writer {
    pub(super) output: Output,
    pub(super) queue: Arc<Queue>,
    pub(super) clock: Arc<dyn Clock>,
    /// The last record on disk.
    pub(super) head: Head,
    pub(super) retry: Duration,
    pub(super) healthy: Gauge,
    pub(super) depth: Gauge,
}

/// Room for what sealing adds to a record.
const SEAL: usize = 192;

/// Releases everyone who waits, also when the writer panics.
struct Ended(Arc<Queue>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended();
    }
}

impl Writer {
    /// Runs until the journal is closed and everything is on disk.
    pub(super) fn run(mut self) {
        let _ended = Ended(self.queue.clone());
        while let Some(mut group) = self.queue.next() {
            self.depth.set(0);
            if let Err(error) = self.commit(&group) {
                self.get_over(group, &error);
            } else {
                self.queue.written(&self.head);
                group.tell(&Ok(()));
            }
        }
    }

    /// Seals, writes and syncs `group`; on failure the chain stays where it was.
    fn commit(&mut self, group: &Group) -> io::Result<()> {
        let mut head = self.head.clone();
        let mut lines = Vec::with_capacity(group.bodies.len() + group.records * SEAL);
        let bodies = group.bodies.strip_suffix(b"\n").unwrap_or_default();
        for body in bodies.split(|byte| *byte == b'\n') {
            head.seal(body, &mut lines);
        }
        self.output.append(self.head.seq + 1, &lines)?;
        self.head = head;
        Ok(())
    }

    /// Refuses everything until `group` could be written after all, with a record of the gap behind it. Whoever waited
    /// for these records was told that they are not kept; keeping them nevertheless says more than leaving them out.
    fn get_over(&mut self, mut group: Group, error: &io::Error) {
        let failure = Unavailable(error.to_string());
        tracing::error!(error = %error, "records cannot be written; side effects are refused until they can");
        self.healthy.set(0);
        group.merge(self.queue.failed(failure.clone()));
        group.tell(&Err(failure));
        loop {
            let closing = self.queue.pause(self.retry);
            let mut gap = Record::lifecycle(self.clock.now(), "audit.recovered");
            gap = gap.ended(OutcomeKind::Failed, Some(Code::RecordUnavailable));
            let gap = line::body(&gap);
            group.push(&gap);
            match self.commit(&group) {
                Ok(()) => break,
                Err(error) if closing => {
                    tracing::error!(%error, records = group.records - 1, "records are lost: the journal closes and they cannot be written");
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
