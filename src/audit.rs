//! Owns: the record of every decision and call: its form, its chain, and how it reaches the disk.
//! Imports: layers 0–1.
//! Never: holds a secret or an argument's value; answers for a record that it could not keep.
//! Fails as: [`Unavailable`] while it runs, [`OpenError`] at the start, [`Broken`] where a chain does not verify.

mod chain;
mod folder;
mod journal;
mod line;
mod output;
mod queue;
mod record;
mod tally;
mod verify;
mod writer;

pub use chain::{Break, Head};
pub use folder::OpenError;
pub use journal::{
    Health, Intent, Journal, OnFailure, Options, Outcome, Recorded, Unavailable, Verdict,
};
pub use record::{Kind, OutcomeKind, Phase, Record, RecordTarget, RecordTunnel};
pub use tally::Tally;
pub use verify::{Broken, Verified, verify, verify_folder};
