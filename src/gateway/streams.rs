//! The listening streams of both eras: how many may be open, and what ends one from Tollgate's side.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    identity::Caller,
    policy::Permit,
    refusal::{Code, Refusal},
};

/// Streams of one key at most, whomever it acts for.
const PER_KEY: usize = 128;
/// Streams in all at most.
const IN_ALL: usize = 4_096;

/// Every open stream, shared by all workers.
#[derive(Default)]
pub(super) struct Streams {
    holds: watch::Sender<Holds>,
    open: Arc<Mutex<Open>>,
}

/// What open streams watch.
#[derive(Clone, Copy, Debug, Default)]
struct Holds {
    generation: u64,
    draining: bool,
}

#[derive(Debug, Default)]
struct Open {
    in_all: usize,
    by_key: HashMap<Arc<str>, usize>,
}

impl Streams {
    /// Ends the streams that an older policy let in.
    pub(super) fn take_up(&self, generation: u64) {
        self.holds
            .send_modify(|holds| holds.generation = generation);
    }

    /// Ends all streams, also those that are still to be opened.
    pub(super) fn end(&self) {
        self.holds.send_modify(|holds| holds.draining = true);
    }

    /// Takes a place for a stream of `caller`'s; `now` is the wall time, by which credentials expire.
    pub(super) fn open(
        &self,
        caller: &Caller,
        permit: &Permit,
        now: SystemTime,
    ) -> Result<Place, Refusal> {
        let left = caller
            .expires()
            .map(|end| end.duration_since(now).unwrap_or_default());
        Ok(Place {
            _seat: Seat::take(&self.open, &caller.evidence)?,
            generation: permit.generation(),
            holds: self.holds.subscribe(),
            expires: left.and_then(|left| Instant::now().checked_add(left)),
        })
    }
}

/// A stream's place among those that are open.
pub(super) struct Place {
    _seat: Seat,
    generation: u64,
    holds: watch::Receiver<Holds>,
    expires: Option<Instant>,
}

impl Place {
    /// Returns when the process drains, another policy holds, or the caller's evidence expires: whoever wants to listen
    /// on asks again, and is judged again.
    pub(super) async fn ended(&mut self) {
        let own = self.generation;
        let over = self
            .holds
            .wait_for(|holds| holds.draining || holds.generation > own);
        match self.expires {
            None => drop(over.await),
            Some(expires) => tokio::select! {
                _ = over => {}
                () = sleep_until(expires) => {}
            },
        }
    }
}

/// One of the streams of a key, given up when dropped.
#[derive(Debug)]
struct Seat {
    open: Arc<Mutex<Open>>,
    key: Arc<str>,
}

impl Seat {
    fn take(open: &Arc<Mutex<Open>>, key: &Arc<str>) -> Result<Self, Refusal> {
        let mut all = open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_key = all.by_key.get(key).copied().unwrap_or_default();
        if of_key >= PER_KEY || all.in_all >= IN_ALL {
            return Err(Refusal::new(
                Code::StreamLimit,
                format!("{PER_KEY} listening streams of this caller, or {IN_ALL} in all, are open"),
            ));
        }
        all.in_all += 1;
        all.by_key.insert(key.clone(), of_key + 1);
        Ok(Self {
            open: open.clone(),
            key: key.clone(),
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut all = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        all.in_all -= 1;
        if let Some(of_key) = all.by_key.get_mut(&self.key) {
            *of_key -= 1;
            if *of_key == 0 {
                all.by_key.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_and_all_together_have_so_many_streams() {
        let open = Arc::new(Mutex::new(Open::default()));
        let take = |key: usize| Seat::take(&open, &format!("key:{key}").into());
        let mut seats: Vec<_> = (0..4_096).map(|n| take(n / 128).unwrap()).collect();
        assert_eq!(take(99).unwrap_err().code, Code::StreamLimit);
        seats.pop();
        assert_eq!(take(0).unwrap_err().code, Code::StreamLimit);
        let last = take(31).unwrap();
        assert!(take(99).is_err());
        drop((seats, last));
        let open = open.lock().unwrap();
        assert_eq!((open.in_all, open.by_key.len()), (0, 0));
    }
}
