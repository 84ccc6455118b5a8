//! What this process knows of one server: what is pinned, and what of it each view was shown.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::Semaphore, time::Instant};

use super::{
    Block, Error, Found, Item, ItemKind, Ledger, LedgerError, MAX_TOOLS, Pinned, PinnedTool,
    Reason, ServerKey, Shown, View, blocked::Blocked, pins_file, tool::Tool,
};
use crate::mcp::Era;
use crate::policy::{Endpoint, Pin, Server};

/// Views whose tools are known at once, at most; of more, those whose list was read longest ago are forgotten.
const VIEWS: usize = 64;
/// Tools known in all views together, at most.
const KNOWN: usize = 4 * MAX_TOOLS;
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
    /// What else is pinned and was shown, and the view that showed it last.
    others: HashMap<(ItemKind, [u8; 32]), View>,
    views: Vec<Seen>,
    /// How often they could not be read, and whether they were not as this gateway wrote them the last time.
    unread: (u64, bool),
    /// How often the server said that its tools changed.
    pub(super) changes: u64,
    pub(super) blocked: Blocked,
}

/// What one view was shown of the tools.
#[derive(Debug)]
pub(super) struct Seen {
    view: View,
    by_name: HashMap<Arc<str>, Standing>,
    /// When the whole list was read last, and how often the server had said by then that it changed.
    pub(super) read: Option<(Instant, u64)>,
}

/// What a tool that was shown is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    /// As pinned.
    Offered(Arc<Tool>),
    /// Anything else.
    Blocked(Reason),
}

/// What becomes of one item that was shown.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// It is as pinned; a tool with what its definition says.
    Pinned(Option<Arc<Tool>>),
    /// It is not.
    Blocked(Reason),
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
                state.others.retain(|(_, digest), _| {
                    pinned.items.iter().any(|item| item.digest == *digest)
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

    /// Whether some view is shown this, as far as is known.
    pub(super) fn shows(&self, item: &Item) -> bool {
        if item.kind != ItemKind::Tool {
            return self.others.contains_key(&(item.kind, item.digest));
        }
        self.views.iter().any(|seen| {
            let standing = seen.by_name.get(&item.name);
            matches!(standing, Some(Standing::Offered(tool)) if tool.item().digest == item.digest)
        })
    }

    /// Forgets what of a kind `view` was shown before: it is all read anew.
    pub(super) fn begin(&mut self, view: View, kind: ItemKind) {
        self.blocked.begin(view, kind);
        self.others
            .retain(|(shown, _), seen_by| *shown != kind || *seen_by != view);
    }

    /// What was shown to `view`.
    pub(super) fn seen(&self, view: View) -> Option<&Seen> {
        self.views.iter().find(|seen| seen.view == view)
    }

    /// Holds what was shown against what is pinned now; notes what is blocked, and returns what of that is new.
    pub(super) fn judge(&mut self, view: View, shown: &[Shown]) -> (Vec<Verdict>, Vec<Block>) {
        let pinned = self.pinned.clone().unwrap_or_default();
        let mut blocks = Vec::new();
        let verdicts = shown
            .iter()
            .map(|shown| {
                let reason = match &shown.item {
                    Ok(item) => match self.as_pinned(view, &pinned, item) {
                        Ok(verdict) => return verdict,
                        Err(reason) => reason,
                    },
                    Err(error) => Reason::Unusable(error.clone()),
                };
                let block = Block {
                    kind: shown.kind,
                    name: shown.name.clone(),
                    reason: reason.clone(),
                };
                if self.blocked.note(view, &block, shown.item.as_ref().ok()) {
                    blocks.push(block);
                }
                Verdict::Blocked(reason)
            })
            .collect();
        (verdicts, blocks)
    }

    fn as_pinned(&mut self, view: View, pinned: &Pinned, item: &Item) -> Result<Verdict, Reason> {
        let Some(item) = pinned.find(item) else {
            return Err(match pinned.named(item.kind, &item.name) {
                [] => Reason::Unreviewed,
                _ => Reason::Drifted,
            });
        };
        if item.kind != ItemKind::Tool {
            self.others.insert((item.kind, item.digest), view);
            return Ok(Verdict::Pinned(None));
        }
        if let Some(tool) = self.tools.get(&item.digest) {
            return Ok(Verdict::Pinned(Some(tool.clone())));
        }
        let tool = Arc::new(Tool::read(item).map_err(Reason::Unusable)?);
        self.tools.insert(item.digest, tool.clone());
        Ok(Verdict::Pinned(Some(tool)))
    }

    /// Learns what `view` was shown of the tools: `whole` replaces what was known. Of pages, none are added once there
    /// are [`MAX_TOOLS`]: a call for one that is missing has the whole list read.
    pub(super) fn learn(
        &mut self,
        view: View,
        shown: &[Shown],
        verdicts: &[Verdict],
        whole: Option<u64>,
    ) {
        let seen = self.seen_mut(view);
        if let Some(changes) = whole {
            seen.by_name.clear();
            seen.read = Some((Instant::now(), changes));
        }
        for (shown, verdict) in shown.iter().zip(verdicts) {
            let standing = match verdict {
                Verdict::Pinned(Some(tool)) => Standing::Offered(tool.clone()),
                Verdict::Pinned(None) => continue,
                Verdict::Blocked(reason) => Standing::Blocked(reason.clone()),
            };
            let has_room = seen.by_name.len() < MAX_TOOLS;
            if let Some(known) = seen.by_name.get_mut(&shown.name) {
                *known = standing;
            } else if has_room {
                seen.by_name.insert(shown.name.clone(), standing);
            }
        }
        self.bound(view);
    }

    /// Forgets what every view was shown: what is pinned has changed.
    pub(super) fn forget_seen(&mut self) {
        self.views.clear();
    }

    fn seen_mut(&mut self, view: View) -> &mut Seen {
        let at = self.views.iter().position(|seen| seen.view == view);
        let at = at.unwrap_or_else(|| {
            self.views.push(Seen {
                view,
                by_name: HashMap::new(),
                read: None,
            });
            self.views.len() - 1
        });
        &mut self.views[at]
    }

    fn bound(&mut self, newest: View) {
        let over = |views: &[Seen]| {
            let known: usize = views.iter().map(|seen| seen.by_name.len()).sum();
            views.len() > VIEWS || known > KNOWN
        };
        while self.views.len() > 1 && over(&self.views) {
            let others = self.views.iter().enumerate();
            let oldest = others
                .filter(|(_, seen)| seen.view != newest)
                .min_by_key(|(_, seen)| seen.read.map(|(read, _)| read));
            match oldest {
                Some((at, _)) => drop(self.views.swap_remove(at)),
                None => return,
            }
        }
    }
}

impl Seen {
    /// What the tool of this name is, for callers of `era`.
    pub(super) fn found(&self, era: Era, name: &str) -> Found {
        match self.by_name.get(name) {
            Some(Standing::Offered(tool)) if tool.unfit(era).is_none() => {
                Found::Tool(PinnedTool::new(tool.clone()))
            }
            Some(Standing::Blocked(reason)) => Found::Blocked(reason.clone()),
            Some(Standing::Offered(_)) | None => Found::Unknown,
        }
    }

    /// Whether the server has said since the whole list was read that it changed; pages do not count.
    pub(super) fn is_stale(&self, changes: u64) -> bool {
        changes > 0 && self.read.is_none_or(|(_, before)| before < changes)
    }
}
