//! Owns: wall time.
//! Imports: no room.
//! Never: measures durations; those use `tokio::time`, so that paused time drives them in tests.
//! Fails as: nothing.

use std::time::{SystemTime, UNIX_EPOCH};

/// Where wall time comes from.
pub trait Clock: Send + Sync {
    /// The current wall time.
    fn now(&self) -> SystemTime;

    /// The same in whole seconds since 1970.
    fn unix(&self) -> i64 {
        let since = self.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    }
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the machine's clock"
    )]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}
