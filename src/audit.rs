//! Owns: the record of every decision and call: its form, its chain, and how it reaches the disk.
//! Imports: layers 0–1.
//! Never: holds a secret or an argument's value; answers for a record that it could not keep.
//! Fails as: [`Unavailable`].

mod journal;
mod record;

pub use journal::{Intent, Journal, Outcome, Recorded, Unavailable, Verdict};
pub use record::{Kind, OutcomeKind, Phase, Record};
