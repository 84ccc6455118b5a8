//! Owns: where a request may go: the one parser of destinations, the table of ranges, the judge.
//! Imports: layer 0.
//! Never: resolves, dials, reads a file or a clock.
//! Fails as: [`Malformed`] (not a destination at all) and [`Blocked`] (a destination that is refused).

mod host;
mod judge;
mod table;
mod target;

pub use host::{Host, Name};
pub use judge::{Blocked, Grant, Judged, JudgedAddr, Leg, Nat64Prefix, Port, Rules};
pub use target::{Malformed, Scheme, Target};
