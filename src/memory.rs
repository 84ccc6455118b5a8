//! Owns: how much memory many calls may hold together, beyond what each of them may hold by itself.
//! Imports: no room.
//! Never: waits for memory, or looks at what is held.
//! Fails as: [`Full`]; the room that wanted to hold more says what it was.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that each reservation holds without asking, so that a usual call touches nothing that threads share. Together
/// they are bounded by the number of connections, of which each has at most one call.
pub const FREE: usize = 16 * 1024;

/// The grain in which memory is counted.
const UNIT: usize = 1024;

/// A budget of bytes that all threads draw on; a clone is the same budget.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Semaphore>);

/// Nothing is left of the budget.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("all memory for this is in use")]
pub struct Full;

impl Memory {
    /// A budget of `bytes`, in whole KiB.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / UNIT)))
    }
}

/// What one holder has of a budget; given back when it is dropped.
#[derive(Debug, Default)]
pub struct Reservation {
    bytes: usize,
    units: Option<OwnedSemaphorePermit>,
}

impl Reservation {
    /// Holds `bytes` more, which come out of `budget`; a reservation that has begun stays with the budget it began with.
    ///
    /// # Errors
    ///
    /// [`Full`] where so much is not left now; what was held before still is.
    pub fn grow(&mut self, bytes: usize, budget: &Memory) -> Result<(), Full> {
        let grown = self.bytes.saturating_add(bytes);
        let more = units(grown) - units(self.bytes);
        if more > 0 {
            let source = self
                .units
                .as_ref()
                .map_or(&budget.0, |held| held.semaphore());
            let more = u32::try_from(more).map_err(|_| Full)?;
            let more = source.clone().try_acquire_many_owned(more);
            let more = more.map_err(|_| Full)?;
            match &mut self.units {
                Some(held) => held.merge(more),
                None => self.units = Some(more),
            }
        }
        self.bytes = grown;
        Ok(())
    }

    /// Takes off what is held beyond `bytes`; dropped, it is given back.
    #[must_use]
    pub fn split_off(&mut self, bytes: usize) -> Self {
        let kept = bytes.min(self.bytes);
        let spare = units(self.bytes) - units(kept);
        let off = Self {
            bytes: self.bytes - kept,
            units: self.units.as_mut().and_then(|held| held.split(spare)),
        };
        self.bytes = kept;
        off
    }

    /// The same bytes; whatever is sliced from them keeps the whole reservation until it is dropped.
    pub fn attach(self, bytes: Bytes) -> Bytes {
        match self.units {
            Some(units) => Bytes::from_owner(Attached {
                bytes,
                _units: units,
            }),
            None => bytes,
        }
    }
}

struct Attached {
    bytes: Bytes,
    _units: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Attached {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The units that a reservation of so many bytes takes.
fn units(bytes: usize) -> usize {
    bytes.saturating_sub(FREE).div_ceil(UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(memory: &Memory) -> usize {
        memory.0.available_permits()
    }

    #[test]
    fn the_first_16_kib_are_free_and_the_rest_counts_in_kib() {
        let memory = Memory::new(10 * 1024 + 1023);
        assert_eq!(left(&memory), 10);
        let mut held = Reservation::default();
        held.grow(16 * 1024, &memory).unwrap();
        assert_eq!(left(&memory), 10);
        for _ in 0..1024 {
            held.grow(1, &memory).unwrap();
        }
        assert_eq!(left(&memory), 9);
        held.grow(1, &memory).unwrap();
        assert_eq!(left(&memory), 8);
        drop(held);
        assert_eq!(left(&memory), 10);
    }

    #[test]
    fn a_budget_is_shared_and_what_does_not_fit_takes_nothing() {
        let memory = Memory::new(4 * 1024);
        let (mut first, mut second) = (Reservation::default(), Reservation::default());
        first.grow(19 * 1024, &memory.clone()).unwrap();
        assert_eq!(second.grow(18 * 1024, &memory), Err(Full));
        second.grow(17 * 1024, &memory).unwrap();
        assert_eq!(second.grow(1, &memory), Err(Full));
        drop(first);
        second.grow(3 * 1024, &memory).unwrap();
        assert_eq!(left(&memory), 0);
        assert_eq!(second.grow(usize::MAX, &memory), Err(Full));
        assert_eq!(left(&memory), 0);
    }

    #[test]
    fn what_is_split_off_is_held_until_it_is_dropped() {
        let memory = Memory::new(8 * 1024);
        let mut held = Reservation::default();
        held.grow(20 * 1024, &memory).unwrap();
        drop(held.split_off(30 * 1024));
        assert_eq!(left(&memory), 4);
        let off = held.split_off(18 * 1024);
        assert_eq!(left(&memory), 4);
        drop(off);
        assert_eq!(left(&memory), 6);
        drop(held.split_off(0));
        assert_eq!(left(&memory), 8);
        held.grow(16 * 1024, &memory).unwrap();
        assert_eq!(left(&memory), 8);
    }

    #[test]
    fn every_slice_keeps_the_reservation() {
        let memory = Memory::new(1024);
        let mut held = Reservation::default();
        held.grow(17 * 1024, &memory).unwrap();
        let whole = held.attach(Bytes::from_static(b"hello"));
        let part = whole.slice(1..3);
        drop(whole);
        assert_eq!((&part[..], left(&memory)), (&b"el"[..], 0));
        drop(part);
        assert_eq!(left(&memory), 1);
    }

    #[test]
    fn small_bytes_stay_as_they_are() {
        let memory = Memory::new(1024);
        let mut held = Reservation::default();
        held.grow(5, &memory).unwrap();
        let bytes = Bytes::from_static(b"hello");
        assert_eq!(held.attach(bytes.clone()).as_ptr(), bytes.as_ptr());
    }
}
