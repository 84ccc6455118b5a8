//! What was read of the database a moment ago: sealed rows, opened anew for each use.

use std::{
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use moka::sync;
use tokio::time::Instant;

/// How long a row is believed without another look: so long what another process did may go unseen.
const BELIEVED: Duration = Duration::from_secs(1);

/// How long it is believed while the database does not answer.
const STALE: Duration = Duration::from_secs(60);

/// Rows that are kept, the least used go first.
const ENTRIES: u64 = 10_000;

/// How long a row is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(60 * 60);

/// Rows by their keys.
pub(in crate::connect) struct Cache<K, V> {
    rows: sync::Cache<K, Seen<V>, ahash::RandomState>,
    /// Rises whenever a row is put here or forgotten, so that what was read before that is not put over it.
    changes: Mutex<u64>,
}

/// A row, and when it was looked at.
struct Seen<V> {
    row: Arc<V>,
    at: Instant,
}

/// That nothing has changed here since a read began.
#[derive(Clone, Copy)]
pub(in crate::connect) struct Before {
    changes: u64,
    at: Instant,
}

impl<V> Clone for Seen<V> {
    fn clone(&self) -> Self {
        Self {
            row: self.row.clone(),
            at: self.at,
        }
    }
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static, V: Send + Sync + 'static> Cache<K, V> {
    pub(in crate::connect) fn new() -> Self {
        let rows = sync::Cache::builder()
            .max_capacity(ENTRIES)
            .time_to_idle(IDLE)
            .build_with_hasher(ahash::RandomState::new());
        Self {
            rows,
            changes: Mutex::default(),
        }
    }

    /// The row, where it may still be believed.
    pub(in crate::connect) fn believed(&self, key: &K) -> Option<Arc<V>> {
        let seen = self.rows.get(key)?;
        (seen.at.elapsed() < BELIEVED).then_some(seen.row)
    }

    /// The row, where nothing better can be had.
    pub(super) fn stale(&self, key: &K) -> Option<Arc<V>> {
        let seen = self.rows.get(key)?;
        (seen.at.elapsed() < STALE).then_some(seen.row)
    }

    /// The row as it was last seen, however long ago.
    pub(in crate::connect) fn last(&self, key: &K) -> Option<Arc<V>> {
        self.rows.get(key).map(|seen| seen.row)
    }

    /// What a read is begun with.
    pub(in crate::connect) fn before(&self) -> Before {
        Before {
            changes: *self.changes(),
            at: Instant::now(),
        }
    }

    /// Keeps what was read since `before`, unless something changed here meanwhile.
    pub(in crate::connect) fn learn(&self, key: &K, row: Arc<V>, before: Before) {
        let changes = self.changes();
        if *changes == before.changes {
            self.rows.insert(key.clone(), Seen { row, at: before.at });
        }
    }

    /// Keeps what this process has just written.
    pub(in crate::connect) fn put(&self, key: &K, row: Arc<V>) {
        let mut changes = self.changes();
        *changes += 1;
        let at = Instant::now();
        self.rows.insert(key.clone(), Seen { row, at });
    }

    /// The next use looks at the database.
    pub(in crate::connect) fn forget(&self, key: &K) {
        let mut changes = self.changes();
        *changes += 1;
        self.rows.invalidate(key);
    }

    fn changes(&self) -> std::sync::MutexGuard<'_, u64> {
        // A count is whole whatever happened to whoever held it.
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_row_is_believed_for_a_second_and_for_a_minute_at_need() {
        let cache = Cache::new();
        cache.put(&"key", Arc::new(1));
        assert_eq!(cache.believed(&"key").as_deref(), Some(&1));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(cache.believed(&"key"), None);
        assert_eq!(cache.stale(&"key").as_deref(), Some(&1));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(cache.stale(&"key"), None);
        assert_eq!(cache.last(&"key").as_deref(), Some(&1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_before_a_change_is_not_put_over_it() {
        let cache = Cache::new();
        let before = cache.before();
        cache.put(&"key", Arc::new(2));
        cache.learn(&"key", Arc::new(1), before);
        assert_eq!(cache.believed(&"key").as_deref(), Some(&2));
        let before = cache.before();
        cache.forget(&"key");
        cache.learn(&"key", Arc::new(2), before);
        assert_eq!(cache.last(&"key"), None, "it is gone");
        let before = cache.before();
        tokio::time::advance(Duration::from_millis(700)).await;
        cache.learn(&"key", Arc::new(3), before);
        assert_eq!(cache.believed(&"key").as_deref(), Some(&3));
        tokio::time::advance(Duration::from_millis(300)).await;
        assert_eq!(
            cache.believed(&"key"),
            None,
            "a second after it was asked for"
        );
    }
}
