//! The journal: a bounded queue, one writer thread, group commit.

use std::{
    borrow::Borrow,
    marker::PhantomData,
    path::PathBuf,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::sync::oneshot;

use super::{
    chain::Head,
    folder::{Folder, OpenError},
    line,
    output::Output,
    queue::Queue,
    record::{Kind, OutcomeKind, Phase, Record},
    writer::Writer,
};
use crate::{
    clock::Clock,
    refusal::{Code, Refusal},
    telemetry::{Counter, Metrics},
};

/// Marks a durable intent.
#[derive(Debug)]
pub struct Intent;
/// Marks a decision taken down for a reply's head.
#[derive(Debug)]
pub struct Verdict;
/// Marks the end of a call.
#[derive(Debug)]
pub struct Outcome;

/// Proof that a record of kind `K` was kept; made only by the journal, moved into what it lets happen.
#[derive(Debug)]
#[must_use]
pub struct Recorded<K>(PhantomData<K>);

/// Records cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("records cannot be kept: {0}")]
pub struct Unavailable(pub String);

impl Unavailable {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        Code::RecordUnavailable
    }
}

impl From<Unavailable> for Refusal {
    fn from(unavailable: Unavailable) -> Self {
        Self::new(unavailable.code(), "records cannot be kept").with_detail(unavailable.0)
    }
}

/// What happens to reads while records cannot be kept (`[audit] on_failure`). Side effects are refused either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// They are refused too.
    #[default]
    Stop,
    /// They go on without a record, counted in a metric.
    Reads,
}

/// Where records go, and the bounds of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The folder, made where it is missing (0700) and used by one process at a time.
    pub folder: PathBuf,
    /// What happens to reads while records cannot be kept.
    pub on_failure: OnFailure,
    /// A file that would grow past this many bytes is followed by the next one.
    pub rotate_bytes: u64,
    /// Records that may wait for the disk; a quarter of this, and of the bytes, is kept for durable ones.
    pub queue_records: usize,
    /// Bytes that may wait for the disk.
    pub queue_bytes: usize,
    /// The longest that a record nobody waits for stays in memory.
    pub linger: Duration,
    /// The pause between attempts to write after a failure.
    pub retry: Duration,
}

impl Options {
    /// The defaults, for this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            on_failure: OnFailure::default(),
            rotate_bytes: 256 << 20,
            // At 20,000 calls a second, a disk that stalls for a second loses no call.
            queue_records: 32_768,
            queue_bytes: 32 << 20,
            // Small groups: one of thousands of records would hold the calls of its core up while it is sealed.
            linger: Duration::from_millis(10),
            retry: Duration::from_secs(1),
        }
    }
}

/// The state of a journal, for `status` and readiness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Why records cannot be kept; `None` while they can.
    pub failure: Option<Unavailable>,
    /// Records that wait for the disk.
    pub waiting: usize,
    /// The last record on disk.
    pub head: Head,
}

/// The way to the writer thread; cheap to clone. Dropping the last one writes what waits, and blocks until that is done.
#[derive(Clone, Debug)]
pub struct Journal(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    queue: Arc<Queue>,
    on_failure: OnFailure,
    /// In the order of [`Kind::ALL`].
    kept: [Counter; Kind::ALL.len()],
    lost: Counter,
    writer: Option<JoinHandle<()>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue.close(None);
        // A writer that panicked has said so; there is nothing left to wait for.
        if let Some(Err(_)) = self.writer.take().map(JoinHandle::join) {
            tracing::error!("the record writer had stopped");
        }
    }
}

impl Journal {
    /// Opens the folder, finds the end of the chain and starts the writer. A line that was half written when the last
    /// process was stopped is moved to a file ending in `.torn`, and a record tells of it.
    pub fn open(
        options: Options,
        clock: Arc<dyn Clock>,
        metrics: &Metrics,
    ) -> Result<Self, OpenError> {
        let folder = Folder::open(&options.folder)?;
        let tail = folder.tail()?;
        let depth = metrics.audit_queue_depth.clone();
        let queue = Arc::new(Queue::new(&options, tail.head.clone(), depth));
        let writer = Writer {
            output: Output::new(folder, options.rotate_bytes, tail.last),
            queue: queue.clone(),
            clock: clock.clone(),
            head: tail.head,
            retry: options.retry,
            healthy: metrics.audit_healthy.clone(),
            syncs: metrics.audit_syncs.clone(),
            lines: Vec::new(),
        };
        metrics.audit_healthy.set(1);
        let thread = thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || writer.run())
            .map_err(|source| OpenError::Unusable {
                path: options.folder,
                source,
            })?;
        let journal = Self(Arc::new(Inner {
            queue,
            on_failure: options.on_failure,
            kept: Kind::ALL.map(|kind| metrics.audit_records(kind.as_str())),
            lost: metrics.audit_records_lost.clone(),
            writer: Some(thread),
        }));
        if let Some(aside) = tail.torn {
            tracing::warn!(file = %aside.display(), "a half-written record was moved aside");
            let told = Record::lifecycle(clock.now(), "audit.torn");
            // A full queue is impossible here, and a failed disk is told of by the next record.
            drop(journal.queue(told.ended(OutcomeKind::Failed, None)));
        }
        Ok(journal)
    }

    /// Keeps an intent; returns once it is on disk (fdatasync).
    pub async fn intent(&self, mut record: Record) -> Result<Recorded<Intent>, Unavailable> {
        record.phase = Phase::Intent;
        self.keep(record).await?;
        Ok(Recorded(PhantomData))
    }

    /// Keeps the outcome of a side effect; returns once it is on disk.
    pub async fn outcome(&self, mut record: Record) -> Result<Recorded<Outcome>, Unavailable> {
        record.phase = Phase::Outcome;
        self.keep(record).await?;
        Ok(Recorded(PhantomData))
    }

    /// Keeps a record that proves nothing to anyone (lifecycle, policy, admin); returns once it is on disk.
    pub async fn keep(&self, record: Record) -> Result<(), Unavailable> {
        let (waiter, kept) = oneshot::channel();
        self.submit(&record, Some(waiter))?;
        kept.await
            .unwrap_or_else(|_| Err(Unavailable("the record writer has stopped".to_owned())))
    }

    /// Queues the record of a read, or of a refusal; it reaches the disk with the next group. Never blocks.
    pub fn queue(&self, record: impl Borrow<Record>) -> Result<Recorded<Verdict>, Unavailable> {
        self.submit(record.borrow(), None)?;
        Ok(Recorded(PhantomData))
    }

    /// Whether a read may be sent: under `on_failure = "stop"` only while its record would be kept.
    pub fn admit_read(&self) -> Result<(), Unavailable> {
        match self.0.on_failure {
            OnFailure::Stop => self.0.queue.admits(),
            OnFailure::Reads => Ok(()),
        }
    }

    /// Queues the record of a read like [`Journal::queue`]; under `on_failure = "reads"` the reply may go out even where
    /// the record is lost, which is counted.
    pub fn read(&self, record: impl Borrow<Record>) -> Result<Recorded<Verdict>, Unavailable> {
        match (self.queue(record), self.0.on_failure) {
            (Err(_), OnFailure::Reads) => {
                self.0.lost.inc();
                Ok(Recorded(PhantomData))
            }
            (result, _) => result,
        }
    }

    /// Whether records are kept, and up to where.
    pub fn health(&self) -> Health {
        let (failure, waiting, head) = self.0.queue.health();
        Health {
            failure,
            waiting,
            head,
        }
    }

    /// Lets no more records in, and returns once those that wait are on disk.
    ///
    /// # Errors
    ///
    /// They could not be written.
    pub async fn close(&self) -> Result<(), Unavailable> {
        let (closer, closed) = oneshot::channel();
        self.0.queue.close(Some(closer));
        // The writer never sends: it drops the sender when it ends.
        drop(closed.await);
        self.health().failure.map_or(Ok(()), Err)
    }

    fn submit(
        &self,
        record: &Record,
        waiter: Option<oneshot::Sender<Result<(), Unavailable>>>,
    ) -> Result<(), Unavailable> {
        self.0.queue.submit(&line::body(record), waiter)?;
        self.0.kept[record.kind as usize].inc();
        Ok(())
    }
}
