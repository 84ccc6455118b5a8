//! When a token is due and when it is over, by a clock that nobody sets.
//!
//! What is stored is wall time, which may jump. A process that sees a token first works its end out once, never later than
//! its whole lifetime from then, and counts by its own steady clock from there on.

use std::time::Duration;

use tokio::time::Instant;

use super::grant::Payload;

/// Refreshed this long before its end at the latest.
const MARGIN: i64 = 60;

/// A shorter lifetime leaves no room for a margin: such a token is refreshed once it is over.
const SHORT: i64 = 30;

/// Seconds by which the refreshes of tokens that were issued at once are spread.
const SPREAD: u64 = 10;

/// How old a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connect) enum Age {
    /// Far from its end, or nobody knows of an end.
    Fresh,
    /// Still good, and time to ask for another.
    Due,
    /// Good for nothing.
    Over,
}

/// The ends of one token in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life(Option<Ends>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    due: Instant,
    over: Instant,
    /// As stored, in Unix seconds.
    expires_at: i64,
}

impl Life {
    /// The life of `payload`, seen at `now`, which is `wall` by wall time. `seed` is any number that stays with the token.
    pub(super) fn of(payload: &Payload, seed: u64, wall: i64, now: Instant) -> Self {
        Self(payload.expires_at.map(|expires_at| {
            let lifetime = expires_at.saturating_sub(payload.obtained_at).max(0);
            let left = expires_at.saturating_sub(wall).clamp(0, lifetime);
            let margin = match lifetime {
                ..SHORT => 0,
                _ => MARGIN.min(lifetime / 5) + (seed % (SPREAD + 1)).cast_signed(),
            };
            let after = |seconds: i64| now + Duration::from_secs(seconds.max(0).unsigned_abs());
            Ends {
                due: after(left - margin),
                over: after(left),
                expires_at,
            }
        }))
    }

    /// How old the token is at `now`, which is `wall` by wall time. Where only wall time says that it is over, either
    /// that was set or the machine slept: the token is tried, and another is asked for.
    pub(super) fn age(&self, wall: i64, now: Instant) -> Age {
        match self.0 {
            None => Age::Fresh,
            Some(ends) if now >= ends.over => Age::Over,
            Some(ends) if now >= ends.due || wall >= ends.expires_at => Age::Due,
            Some(_) => Age::Fresh,
        }
    }
}

#[cfg(test)]
mod tests;
