//! How many of one thing may be under way: for one key, whomever it acts for, and in all.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The places for one kind of thing, shared by all workers.
#[derive(Debug)]
pub(in crate::gateway) struct Seats {
    per_key: usize,
    in_all: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    in_all: usize,
    by_key: HashMap<Arc<str>, usize>,
}

/// A place, given up when dropped.
#[derive(Debug)]
pub(in crate::gateway) struct Seat {
    taken: Arc<Mutex<Taken>>,
    key: Arc<str>,
}

impl Seats {
    pub(in crate::gateway) fn new(per_key: usize, in_all: usize) -> Self {
        Self {
            per_key,
            in_all,
            taken: Arc::default(),
        }
    }

    /// A place for `key`; `None` where it has its share, or all are taken.
    pub(in crate::gateway) fn take(&self, key: &Arc<str>) -> Option<Seat> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_key = taken.by_key.get(key).copied().unwrap_or_default();
        if of_key >= self.per_key || taken.in_all >= self.in_all {
            return None;
        }
        taken.in_all += 1;
        taken.by_key.insert(key.clone(), of_key + 1);
        Some(Seat {
            taken: self.taken.clone(),
            key: key.clone(),
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.in_all -= 1;
        if let Some(of_key) = taken.by_key.get_mut(&self.key) {
            *of_key -= 1;
            if *of_key == 0 {
                taken.by_key.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_and_all_together_have_so_many_places() {
        let all = Seats::new(128, 4_096);
        let take = |key: usize| all.take(&format!("key:{key}").into());
        let mut seats: Vec<_> = (0..4_096).map(|n| take(n / 128).unwrap()).collect();
        assert!(take(99).is_none());
        seats.pop();
        assert!(take(0).is_none());
        let last = take(31).unwrap();
        assert!(take(99).is_none());
        drop((seats, last));
        let taken = all.taken.lock().unwrap();
        assert_eq!((taken.in_all, taken.by_key.len()), (0, 0));
    }
}
