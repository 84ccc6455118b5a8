//! Owns: logs and metrics: how they are set up, and the handles that rooms count with.
//! Imports: no room.
//! Never: writes a secret, or labels a metric with a user, a URL or an argument.
//! Fails as: [`LogError`].

mod log;
mod metrics;

pub use log::{Format, Levels, LogError, ROOMS};
pub use metrics::{Counter, Gauge, Metrics};
