//! What this process knows of one server: what is pinned, and what of it each view was shown.

pub(super) mod judged;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Semaphore;

use super::{
    Error, ItemKind, Ledger, LedgerError, Pinned, ServerKey, Shown, View, blocked::Blocked,
    pins_file, seen::Sights, tool::Tool,
};
use crate::policy::{Endpoint, Pin, Server};

/// How often a change of the pins is tried while others change them too.
const TRIES: usize = 8;

/// One server.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: Arc<str>,
    key: ServerKey,
    endpoint: Endpoint,
    pin: Pin,
    state: Mutex<State>,
    /// The turn to read what is pinned: of many that begin at once, one reads.
    opening: Semaphore,
    /// The turn to read a whole list.
    pub(super) reading: Arc<Semaphore>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// `None` until they were read.
    pinned: Option<Arc<Pinned>>,
    /// Pinned tools that were shown, by digest.
    tools: HashMap<[u8; 32], Arc<Tool>>,
    /// What each view was shown.
    pub(super) sights: Sights,
    /// How often they could not be read, and whether they were not as this gateway wrote them the last time.
    unread: (u64, bool),
    pub(super) blocked: Blocked,
}

impl Known {
    pub(super) fn new(server: &Server) -> Self {
        Self {
            name: server.name.clone(),
            key: ServerKey::of(server),
            endpoint: server.endpoint.clone(),
            pin: server.pin.clone(),
            state: Mutex::default(),
            opening: Semaphore::new(1),
            reading: Arc::new(Semaphore::new(1)),
        }
    }

    /// A server that was moved to another address is another server, and so is one whose pins file was changed.
    pub(super) fn is_of(&self, server: &Server) -> bool {
        let same_pins = match (&self.pin, &server.pin) {
            (Pin::File(Some(one)), Pin::File(Some(other))) => Arc::ptr_eq(one, other),
            (one, other) => one == other,
        };
        same_pins && self.endpoint == server.endpoint
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an operator keeps the pins in a file, which Tollgate does not write.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.pin, Pin::File(_))
    }

    /// What is pinned, read from where it is kept if it was not read yet.
    pub(super) async fn pinned(&self, ledger: &dyn Ledger) -> Result<Arc<Pinned>, Error> {
        let known = || self.state().pinned.clone();
        if let Some(pinned) = known() {
            return Ok(pinned);
        }
        let before = self.state().unread.0;
        let _turn = self.opening.acquire().await;
        if let Some(pinned) = known() {
            return Ok(pinned);
        }
        let (now, forged) = self.state().unread;
        // Who waited for a reading that failed does not have the next wait for one of its own.
        if now != before {
            return Err(self.failed(self.unread_by_another(forged)));
        }
        let read = self.read(ledger).await;
        if let Err(Error::Ledger { source, .. }) = &read {
            let mut state = self.state();
            state.unread = (now + 1, matches!(source, LedgerError::Forged { .. }));
        }
        read
    }

    fn unread_by_another(&self, forged: bool) -> LedgerError {
        let server = self.name.clone();
        if forged {
            return LedgerError::Forged { server };
        }
        let source = "another request has just tried to".into();
        LedgerError::Unavailable { server, source }
    }

    async fn read(&self, ledger: &dyn Ledger) -> Result<Arc<Pinned>, Error> {
        let pinned = match &self.pin {
            Pin::FirstUse => ledger
                .read(&self.key)
                .await
                .map_err(|source| self.failed(source))?
                .unwrap_or_default(),
            Pin::File(None) => Pinned {
                reviewed: true,
                ..Pinned::default()
            },
            Pin::File(Some(text)) => {
                let file = format!("pins/{}.json", self.name);
                pins_file::read(&file, &self.name, text).map_err(|faults| Error::File {
                    server: self.name.clone(),
                    fault: faults
                        .into_iter()
                        .next()
                        .expect("what is refused has a fault"),
                })?
            }
        };
        Ok(self.put(pinned))
    }

    /// Pins what `view` shows for the first time, durable on return. `None` where nothing more is taken.
    pub(super) async fn take(
        &self,
        ledger: &dyn Ledger,
        view: View,
        kind: ItemKind,
        shown: &[Shown],
    ) -> Result<Option<Arc<Pinned>>, Error> {
        let mark = view.mark(kind);
        self.change(ledger, |pinned, state| {
            let mut usable = shown
                .iter()
                .filter_map(|shown| shown.item.as_ref().ok())
                .peekable();
            if pinned.is_settled(&mark) || usable.peek().is_none() {
                return Ok(None);
            }
            // What another view may not see any more is not taken by the way of this one.
            let new = usable.filter(|item| !state.blocked.holds(item));
            Ok(Some(pinned.taking(mark, new)))
        })
        .await
    }

    /// Makes the change that `next` works out, however often others come first. `None` where there is none to make.
    pub(super) async fn change(
        &self,
        ledger: &dyn Ledger,
        next: impl Fn(&Pinned, &State) -> Result<Option<Pinned>, Error>,
    ) -> Result<Option<Arc<Pinned>>, Error> {
        let mut pinned = self.pinned(ledger).await?;
        for _ in 0..TRIES {
            let Some(next) = next(&pinned, &self.state())? else {
                return Ok(None);
            };
            if next.is_too_large() {
                return Err(Error::TooLarge(self.name.clone()));
            }
            let expected = (pinned.version > 0).then_some(pinned.version);
            let replaced = ledger.replace(&self.key, expected, &next).await;
            if replaced.map_err(|source| self.failed(source))? {
                return Ok(Some(self.put(next)));
            }
            pinned = self.read(ledger).await?;
        }
        Err(Error::Contended(self.name.clone()))
    }

    /// Holds what was read or written, unless something newer is known.
    fn put(&self, pinned: Pinned) -> Arc<Pinned> {
        let mut state = self.state();
        match &state.pinned {
            Some(known) if known.version >= pinned.version => known.clone(),
            _ => {
                let pinned = Arc::new(pinned);
                state.blocked.settle(&pinned);
                state.tools.retain(|digest, tool| {
                    let item = pinned.find(tool.item());
                    item.is_some_and(|item| item.digest == *digest && item == tool.item())
                });
                state.pinned = Some(pinned.clone());
                pinned
            }
        }
    }

    fn failed(&self, source: LedgerError) -> Error {
        Error::Ledger {
            server: self.name.clone(),
            source,
        }
    }
}

impl State {
    /// What is pinned, once it was read.
    pub(super) fn pinned(&self) -> Option<&Arc<Pinned>> {
        self.pinned.as_ref()
    }
}
