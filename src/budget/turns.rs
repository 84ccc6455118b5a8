//! What the results of each turn have come to.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ahash::RandomState;
use tokio::time::Instant;

use crate::subject::Subject;

/// Results without a turn share one budget for so long.
const WINDOW: Duration = Duration::from_secs(60);
/// A turn that nothing was heard of for so long is over.
const LIFE: Duration = Duration::from_secs(30 * 60);
/// Parts that are locked apart, so that workers seldom wait for one another.
const PARTS: usize = 16;
/// Turns that a part counts at once: so many new ones make all that were silent since go.
const GENERATION: usize = 2_048;

/// The turns of all callers. Bounded: of those that are silent, the oldest are forgotten.
#[derive(Debug, Default)]
pub struct Turns {
    /// Makes keys that nobody outside can aim at. Two turns with one key, of so few, are not to be expected, and would only
    /// share a budget.
    hasher: RandomState,
    counted: [Mutex<Counted>; PARTS],
}

#[derive(Debug, Default)]
struct Counted {
    young: HashMap<u64, Spent, BuildHasherDefault<Same>>,
    old: HashMap<u64, Spent, BuildHasherDefault<Same>>,
    since: Option<Instant>,
}

/// Keys are hashes already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes
            .iter()
            .fold(self.0, |key, byte| key << 8 | u64::from(*byte));
    }
}

#[derive(Clone, Copy, Debug)]
struct Spent {
    bytes: usize,
    begun: Instant,
}

impl Turns {
    /// Counts a result of so many bytes. False where the turn had come to `budget` before: the result is one too many, and
    /// does not count.
    pub fn spend(&self, subject: &Subject, bytes: usize, budget: usize) -> bool {
        self.count(subject, bytes, Some(budget))
    }

    /// Counts so many bytes whatever they come to. False where the turn had come to `budget` before.
    pub fn add(&self, subject: &Subject, bytes: usize, budget: usize) -> bool {
        let within = self.count(subject, bytes, Some(budget));
        within || !self.count(subject, bytes, None)
    }

    fn count(&self, subject: &Subject, bytes: usize, budget: Option<usize>) -> bool {
        let key = self.key(subject);
        let now = Instant::now();
        let mut counted = self.lock(key);
        let fresh = Spent {
            bytes: 0,
            begun: now,
        };
        counted.turn_over(now);
        let old = counted.old.remove(&key);
        let spent = counted
            .young
            .entry(key)
            .or_insert_with(|| old.unwrap_or(fresh));
        if subject.turn.is_none() && now - spent.begun >= WINDOW {
            *spent = fresh;
        }
        if budget.is_some_and(|budget| spent.bytes >= budget) {
            return false;
        }
        spent.bytes = spent.bytes.saturating_add(bytes);
        true
    }

    fn key(&self, subject: &Subject) -> u64 {
        let Subject {
            tenant,
            agent,
            user,
            conversation,
            turn,
            ..
        } = subject;
        let named = (tenant, agent, user, conversation, turn);
        self.hasher.hash_one(named)
    }

    fn lock(&self, key: u64) -> MutexGuard<'_, Counted> {
        // The map goes by the lowest and the highest bits.
        let part = &self.counted[(key >> 32) as usize % PARTS];
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    /// Forgets who was not heard of since the last time, if there are too many, or it is long ago.
    fn turn_over(&mut self, now: Instant) {
        let since = *self.since.get_or_insert(now);
        if self.young.len() >= GENERATION || now - since >= LIFE {
            self.old = std::mem::take(&mut self.young);
            self.since = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::tests::subject;

    fn turn(name: &str) -> Subject {
        Subject {
            conversation: Some("c".into()),
            turn: Some(name.into()),
            ..subject("ann")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_over_when_another_begins() {
        let turns = Turns::default();
        assert!(turns.spend(&turn("1"), 60, 100));
        assert!(turns.spend(&turn("1"), 60, 100));
        assert!(!turns.spend(&turn("1"), 1, 100));
        tokio::time::advance(WINDOW * 2).await;
        assert!(!turns.spend(&turn("1"), 1, 100));
        assert!(turns.spend(&turn("2"), 1, 100));
        let bob = Subject {
            user: "bob".into(),
            ..turn("1")
        };
        assert!(turns.spend(&bob, 1, 100));
    }

    #[tokio::test(start_paused = true)]
    async fn without_turns_a_minute_is_one() {
        let turns = Turns::default();
        let ann = subject("ann");
        assert!(turns.spend(&ann, 100, 100));
        tokio::time::advance(WINDOW - Duration::from_secs(1)).await;
        assert!(!turns.spend(&ann, 1, 100));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(turns.spend(&ann, 1, 100));
    }

    #[tokio::test(start_paused = true)]
    async fn reading_on_counts_and_goes_on() {
        let turns = Turns::default();
        assert!(turns.add(&turn("1"), 100, 100));
        assert!(!turns.add(&turn("1"), 100, 100));
        assert!(!turns.spend(&turn("1"), 1, 200));
    }

    #[tokio::test(start_paused = true)]
    async fn turns_that_are_heard_of_are_not_forgotten() {
        let turns = Turns::default();
        assert!(turns.spend(&turn("mine"), 100, 100));
        for round in 0..6 {
            for other in 0..PARTS * GENERATION / 2 {
                turns.spend(&turn(&format!("{round}.{other}")), 1, 100);
            }
            assert!(!turns.spend(&turn("mine"), 1, 100));
        }
        let kept = turns.counted.iter().map(|part| {
            let part = part.lock().unwrap();
            part.young.len() + part.old.len()
        });
        assert!(kept.sum::<usize>() <= 2 * PARTS * GENERATION);
    }
}
