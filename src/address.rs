//! Owns: where a request may go: the one parser of destinations, the table of ranges, the judge.
//! Imports: layer 0.
//! Never: resolves, dials, reads a file or a clock.
//! Fails as: [`Malformed`] (not a destination at all) and [`Blocked`] (a destination that is refused).

mod embedded;
mod grant;
mod host;
mod judge;
mod names;
mod reason;
mod table;
mod target;
#[cfg(test)]
mod tests;

pub use embedded::Nat64Prefix;
pub use grant::{Grant, Leg, Port};
pub use host::{Host, Name};
pub use judge::{Blocked, Judged, JudgedAddr, Rules};
pub use target::{Malformed, Scheme, Target};
