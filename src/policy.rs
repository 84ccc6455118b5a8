//! Owns: who may use what: files become a checked snapshot, and [`decide`] answers from it.
//! Imports: layer 0, `address`.
//! Never: does I/O; texts come in, verdicts go out.
//! Fails as: [`crate::table::Fault`]s for files; [`crate::refusal::Refusal`] for a decided no.

mod decide;
mod server;
mod snapshot;

pub use decide::{Permit, decide};
pub use server::{Approval, Era, Pattern, Server, ServerLimits, ToolOverride, Trust, Unasked};
pub use snapshot::{AccessMode, Key, Snapshot};
