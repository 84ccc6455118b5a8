//! Whose turn it is to ask for new tokens, and when: leases in the database among processes, and patience with a provider
//! that does not answer.

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use tokio::time::Instant;
use uuid::Uuid;

use crate::connect::{Claim, Claimed, GrantKey, GrantRow, Inner, RecordsError};

/// How long a claim lasts: three times what a whole exchange may take.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// A request that has not left so long after its claim does not leave any more: whoever claims next would cross it.
pub(super) const LATEST: Duration = Duration::from_secs(15);

/// The first and the longest pause after a failure.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5 * 60));

/// The longest pause that a provider may ask for; a later time in the database was left behind by a clock.
pub(super) const LONGEST: Duration = Duration::from_secs(60 * 60);

/// Failures of a token endpoint, one after the other and of whatever connections, from which on it is left alone.
const TROUBLED: u32 = 5;

/// The longest that a troubled endpoint is left alone.
const ALONE: Duration = Duration::from_secs(60);

/// How long a token that a forced refresh gave is not refreshed again because a server refuses it.
const FORCED: Duration = Duration::from_secs(30);

/// Connections and endpoints that are remembered.
const ENTRIES: u64 = 10_000;

/// Whose turn it is, going by a row that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Anybody's.
    Free,
    /// Somebody's who claimed it.
    Taken,
    /// Nobody's, and somebody left it in the middle.
    Abandoned,
}

/// Reads a row's lease at `now`. One that ends later than any could was left behind by a clock that was set back. The
/// database has the last word when it is claimed.
pub(super) fn turn(row: &GrantRow, now: i64) -> Turn {
    let Some(lease) = &row.lease else {
        return Turn::Free;
    };
    let longest = now.saturating_add_unsigned(2 * LEASE.as_secs());
    match lease.until {
        until if until > now && until <= longest => Turn::Taken,
        _ if lease.sent => Turn::Abandoned,
        _ => Turn::Free,
    }
}

/// Seconds until a row may be tried again; `None` where that is now.
pub(super) fn pause(row: &GrantRow, now: i64) -> Option<i64> {
    let left = row.next_try?.saturating_sub(now);
    (left > 0 && left <= LONGEST.as_secs().cast_signed()).then_some(left)
}

/// Takes the lease of `row`, as it was read.
pub(super) async fn claim(inner: &Inner, row: &GrantRow) -> Result<Claimed, RecordsError> {
    let claim = Claim {
        record: row.record,
        version: row.version,
        holder: inner.holder,
        lease: LEASE,
    };
    inner.records.claim(&claim).await
}

/// What this process remembers of failures.
pub(in crate::connect) struct Patience {
    /// Failures of each connection, one after the other.
    failures: Cache<GrantKey, u32, ahash::RandomState>,
    endpoints: Cache<Arc<str>, Trouble, ahash::RandomState>,
    /// Digests of what forced refreshes gave lately.
    forced: Cache<GrantKey, [u8; 32], ahash::RandomState>,
    /// Rows that did not open, and were told of.
    told: Cache<(Uuid, u64), (), ahash::RandomState>,
}

#[derive(Clone, Copy)]
struct Trouble {
    failures: u32,
    until: Instant,
}

impl Patience {
    pub(in crate::connect) fn new() -> Self {
        Self {
            failures: remembered(LONGEST),
            endpoints: remembered(LONGEST),
            forced: remembered(FORCED),
            told: remembered(LONGEST),
        }
    }

    /// Whether a token endpoint is to be left alone now, since it failed again and again.
    pub(super) fn troubled(&self, endpoint: &str) -> bool {
        let trouble = self.endpoints.get(endpoint);
        trouble.is_some_and(|trouble| Instant::now() < trouble.until)
    }

    /// The endpoint gave an answer about the token.
    pub(super) fn answered(&self, key: &GrantKey, endpoint: &str) {
        self.failures.invalidate(key);
        self.endpoints.invalidate(endpoint);
    }

    /// It gave none. Says how long this connection waits now.
    pub(super) fn failed(
        &self,
        key: &GrantKey,
        endpoint: &str,
        retry_after: Option<Duration>,
    ) -> Duration {
        let failures = self.failures.get(key).unwrap_or_default();
        self.failures.insert(key.clone(), failures + 1);
        let before = self.endpoints.get(endpoint);
        let trouble = before.map_or(1, |trouble| trouble.failures + 1);
        let alone = match trouble.checked_sub(TROUBLED) {
            Some(more) => doubled(PAUSES.0, more, ALONE),
            None => Duration::ZERO,
        };
        let trouble = Trouble {
            failures: trouble,
            until: Instant::now() + alone,
        };
        self.endpoints.insert(endpoint.into(), trouble);
        let wanted = retry_after.unwrap_or_default().min(LONGEST);
        doubled(PAUSES.0, failures, PAUSES.1).max(wanted)
    }

    /// A forced refresh gave the credential with this digest.
    pub(super) fn forced(&self, key: &GrantKey, digest: [u8; 32]) {
        self.forced.insert(key.clone(), digest);
    }

    /// Whether a forced refresh gave it just now.
    pub(in crate::connect) fn was_forced(&self, key: &GrantKey, digest: &[u8; 32]) -> bool {
        self.forced.get(key).as_ref() == Some(digest)
    }

    /// Whether a row that does not open was not told of yet.
    pub(in crate::connect) fn tell(&self, record: Uuid, version: u64) -> bool {
        let entry = self.told.entry((record, version));
        entry.or_insert(()).is_fresh()
    }
}

fn remembered<K, V>(time: Duration) -> Cache<K, V, ahash::RandomState>
where
    K: std::hash::Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    Cache::builder()
        .max_capacity(ENTRIES)
        .time_to_live(time)
        .build_with_hasher(ahash::RandomState::new())
}

fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first.saturating_mul(1 << times.min(16)).min(longest)
}

#[cfg(test)]
mod tests;
