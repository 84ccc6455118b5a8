//! Streams of events to clients: that of a call's answer, those of what servers say unasked, and coming back to either.
//!
//! Here is how many of the listening streams of both eras may be open, and what ends one from Tollgate's side.

pub(super) mod courier;
mod event_id;
mod listening;
pub(super) mod relay;
pub(super) mod resume;
pub(super) mod subscription;

use std::time::SystemTime;

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    gateway::limits::seats::{Seat, Seats},
    identity::Caller,
    policy::Permit,
    refusal::{Code, Refusal},
};

/// Streams of one key at most, whomever it acts for.
const PER_KEY: usize = 128;
/// Streams in all at most.
const IN_ALL: usize = 4_096;

/// Every open stream, shared by all workers.
pub(super) struct Streams {
    holds: watch::Sender<Holds>,
    seats: Seats,
}

/// What open streams watch.
#[derive(Clone, Copy, Debug, Default)]
struct Holds {
    generation: u64,
    draining: bool,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            holds: watch::Sender::default(),
            seats: Seats::new(PER_KEY, IN_ALL),
        }
    }
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
    fn open(&self, caller: &Caller, permit: &Permit, now: SystemTime) -> Result<Place, Refusal> {
        let left = caller
            .expires()
            .map(|end| end.duration_since(now).unwrap_or_default());
        let seat = self.seats.take(&caller.evidence).ok_or_else(|| {
            Refusal::new(
                Code::StreamLimit,
                format!("{PER_KEY} listening streams of this caller, or {IN_ALL} in all, are open"),
            )
        })?;
        Ok(Place {
            _seat: seat,
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
