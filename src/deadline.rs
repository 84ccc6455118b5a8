//! Owns: how long a call may take: one end for the whole, bounds for its phases.
//! Imports: no room.
//! Never: extends an end that was set.
//! Fails as: nothing; the room that waits names what it waited for.

use std::time::Duration;

use tokio::time::Instant;

/// The longest any tool or OAuth leg may take, whatever a file says (requirement E3).
pub const CEILING: Duration = Duration::from_secs(120);

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// The end `limit` from now, never past [`CEILING`].
    pub fn after(limit: Duration) -> Self {
        Self(Instant::now() + limit.min(CEILING))
    }

    /// The end of a stream that no single call owns: a day, since it may well be silent for hours.
    pub fn of_open_stream() -> Self {
        Self(Instant::now() + Duration::from_secs(24 * 60 * 60))
    }

    /// The instant of the end.
    pub fn instant(self) -> Instant {
        self.0
    }

    /// The sooner of this end and `limit` from now: the bound of one phase.
    pub fn phase(self, limit: Duration) -> Instant {
        self.0.min(Instant::now() + limit)
    }

    /// Whether the end has come.
    pub fn passed(self) -> bool {
        Instant::now() >= self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_phase_never_outlives_the_call() {
        let deadline = Deadline::after(Duration::from_secs(10));
        assert_eq!(deadline.phase(Duration::from_secs(30)), deadline.instant());
        assert!(deadline.phase(Duration::from_secs(1)) < deadline.instant());
    }

    #[tokio::test(start_paused = true)]
    async fn no_file_moves_the_ceiling() {
        let deadline = Deadline::after(Duration::from_secs(100_000));
        assert_eq!(deadline.instant(), Instant::now() + CEILING);
        tokio::time::advance(CEILING).await;
        assert!(deadline.passed());
    }
}
