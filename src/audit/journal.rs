//! The journal: a bounded queue, one writer thread, group commit.

use std::marker::PhantomData;

use super::Record;
use crate::refusal::Code;

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

/// The way to the writer thread; cheap to clone.
#[derive(Clone, Debug)]
pub struct Journal;

impl Journal {
    /// Keeps an intent; returns once it is on disk (fdatasync).
    pub async fn intent(&self, _record: Record) -> Result<Recorded<Intent>, Unavailable> {
        todo!()
    }

    /// Keeps the outcome of a side effect; returns once it is on disk.
    pub async fn outcome(&self, _record: Record) -> Result<Recorded<Outcome>, Unavailable> {
        todo!()
    }

    /// Queues the record of a read, or of a refusal; it reaches the disk with the next group.
    pub fn queue(&self, _record: Record) -> Result<Recorded<Verdict>, Unavailable> {
        todo!()
    }
}
