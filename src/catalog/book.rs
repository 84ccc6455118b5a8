//! What is pinned of one server, at hand: what lists are held against, and what a first list is entered into.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::sync::OwnedSemaphorePermit;

use super::{
    Block, Error, Item, ItemKind, Ledger, Pinned, Shown, View,
    known::{Known, judged::Verdict},
    tool::Tool,
};
use crate::mcp::{
    Era,
    items::{Fate, List},
};

/// A call for an unknown name reads the whole list again, at most this often a server and view.
const REREAD_AFTER: Duration = Duration::from_secs(1);

/// The pins of one server; cheap to clone.
#[derive(Clone, Debug)]
pub struct Book {
    known: Arc<Known>,
    ledger: Arc<dyn Ledger>,
    pinned: Arc<Pinned>,
}

/// What becomes of the items of a page.
#[derive(Debug, Default)]
pub struct Judged {
    /// For each item, in order.
    pub fates: Vec<Fate<Arc<str>>>,
    /// What nobody could call, and why: tools whose own definition makes them useless to the caller's era.
    pub unfit: Vec<(Arc<str>, String)>,
    /// What is new of all this.
    pub report: Report,
}

/// What is to be told of a list.
#[derive(Debug, Default)]
pub struct Report {
    /// What was pinned, since a view showed its list for the first time.
    pub taken: Option<Taken>,
    /// What is not offered, each told once by this process.
    pub blocks: Vec<Block>,
}

/// What a first list brought.
#[derive(Debug)]
pub struct Taken {
    /// The version of the catalogue now.
    pub version: u64,
    /// What was added.
    pub items: Vec<Item>,
}

impl Book {
    pub(super) async fn open(known: Arc<Known>, ledger: Arc<dyn Ledger>) -> Result<Self, Error> {
        let pinned = known.pinned(&*ledger).await?;
        Ok(Self {
            known,
            ledger,
            pinned,
        })
    }

    /// Whether the first list of this kind was taken for `view`, or nothing more is taken.
    pub fn is_settled(&self, view: View, list: List) -> bool {
        self.pinned.is_settled(&view.mark(ItemKind::of(list)))
    }

    /// Of a list what is pinned and of use to callers of `era`, whoever was shown it; of each name what was accepted last.
    pub fn standing(&self, list: List, era: Era) -> Vec<Item> {
        let kind = ItemKind::of(list);
        let items = self.pinned.items.iter().filter(|item| item.kind == kind);
        let newest = items.filter(|item| {
            let newest = self.pinned.newest(kind, &item.name);
            newest.is_some_and(|newest| newest.key() == item.key())
        });
        let of_use = |item: &&Item| match kind {
            ItemKind::Tool => Tool::read(item).is_ok_and(|tool| tool.unfit(era).is_none()),
            _ => true,
        };
        newest.filter(of_use).cloned().collect()
    }

    /// The instructions that are pinned, a JSON string; of several those that were accepted last.
    pub fn standing_instructions(&self) -> Option<Arc<str>> {
        let newest = self.pinned.newest(ItemKind::Instructions, "")?;
        Some(newest.definition.clone())
    }

    /// Holds a page against what is pinned, and learns from it which tools `view` is shown.
    pub fn judge(&self, view: View, era: Era, list: List, shown: &[Shown]) -> Judged {
        let kind = ItemKind::of(list);
        let mut state = self.known.state();
        let (verdicts, blocks) = state.judge(view, shown);
        state.sights.learn(view, kind, (shown, &verdicts), None);
        drop(state);
        let mut judged = Judged {
            report: Report {
                taken: None,
                blocks,
            },
            ..Judged::default()
        };
        let pinned = shown.iter().zip(&verdicts);
        let pinned = pinned.filter(|(_, verdict)| matches!(verdict, Verdict::Pinned(_)));
        let mut stand: HashSet<&str> = pinned.map(|(shown, _)| &*shown.name).collect();
        for (shown, verdict) in shown.iter().zip(verdicts) {
            let fate = match verdict {
                Verdict::Pinned(Some(tool)) => match tool.unfit(era) {
                    None => Fate::Keep,
                    Some(unfit) => {
                        judged.unfit.push((shown.name.clone(), unfit.to_string()));
                        Fate::Drop
                    }
                },
                Verdict::Pinned(None) => Fate::Keep,
                // Once: of one name a page may hold thousands, and what stands for them may be long.
                Verdict::Blocked(_) if stand.insert(&shown.name) => self.instead(shown),
                Verdict::Blocked(_) => Fate::Drop,
            };
            judged.fates.push(fate);
        }
        judged
    }

    /// Of prompts and templates the text before stays in force; a tool that changed may do something else now.
    fn instead(&self, shown: &Shown) -> Fate<Arc<str>> {
        if shown.kind == ItemKind::Tool {
            return Fate::Drop;
        }
        let newest = self.pinned.newest(shown.kind, &shown.name);
        newest.map_or(Fate::Drop, |item| Fate::Replace(item.definition.clone()))
    }

    /// Waits for the turn to read the whole list. `None` where it was read while waiting, or a moment ago: the caller
    /// then looks again at what is known.
    pub async fn turn(&self, view: View, list: List) -> Option<Turn> {
        let place = self.known.reading.clone().acquire_owned().await.ok()?;
        let kind = ItemKind::of(list);
        let state = self.known.state();
        let read = state.sights.fresh(view, kind).and_then(|seen| seen.read);
        let just_read = read.is_some_and(|(at, _)| at.elapsed() < REREAD_AFTER);
        let settled = state
            .pinned()
            .is_some_and(|pinned| pinned.is_settled(&view.mark(kind)));
        if settled && just_read {
            return None;
        }
        let changes = state.sights.changes(kind);
        drop(state);
        Some(self.taking_turn(view, list, changes, place))
    }

    /// Waits for the turn to read the whole list, however lately it was read. `None` where the process ends.
    pub async fn turn_anew(&self, view: View, list: List) -> Option<Turn> {
        let place = self.known.reading.clone().acquire_owned().await.ok()?;
        let changes = self.known.state().sights.changes(ItemKind::of(list));
        Some(self.taking_turn(view, list, changes, place))
    }

    fn taking_turn(
        &self,
        view: View,
        list: List,
        changes: u64,
        place: OwnedSemaphorePermit,
    ) -> Turn {
        Turn {
            book: self.clone(),
            view,
            list,
            changes,
            _place: place,
        }
    }

    /// What callers are told instead of the instructions of a server, a JSON string, and what is to be told of it:
    /// those that are pinned, and none where none are. At the first use of `view` they are pinned.
    ///
    /// # Errors
    ///
    /// What is pinned cannot be written.
    pub async fn instructions(
        &self,
        view: View,
        text: &str,
    ) -> Result<(Fate<Arc<str>>, Report), Error> {
        let shown = [Shown::instructions(text)];
        let (book, taken) = self.taking(view, ItemKind::Instructions, &shown).await?;
        let mut state = book.known.state();
        let (verdicts, blocks) = state.judge_all(view, ItemKind::Instructions, &shown, 0);
        drop(state);
        let fate = match &verdicts[..] {
            [Verdict::Pinned(_)] => Fate::Keep,
            _ => book.instead(&shown[0]),
        };
        Ok((fate, Report { taken, blocks }))
    }

    /// The book after what `view` shows for the first time was entered, if it is the first time.
    async fn taking(
        &self,
        view: View,
        kind: ItemKind,
        shown: &[Shown],
    ) -> Result<(Self, Option<Taken>), Error> {
        let taken = self.known.take(&*self.ledger, view, kind, shown).await?;
        let Some(pinned) = taken else {
            let book = Self::open(self.known.clone(), self.ledger.clone()).await?;
            return Ok((book, None));
        };
        let new = pinned.items.iter();
        let new = new.filter(|item| item.version == pinned.version);
        let taken = Taken {
            version: pinned.version,
            items: new.cloned().collect(),
        };
        let book = Self {
            pinned,
            ..self.clone()
        };
        Ok((book, Some(taken)))
    }
}

/// The exclusive right to read a server's whole list.
#[derive(Debug)]
pub struct Turn {
    book: Book,
    view: View,
    list: List,
    /// How often the server had said, before the list was read, that it changed.
    changes: u64,
    _place: OwnedSemaphorePermit,
}

impl Turn {
    /// Takes the whole list: pins it where it is the first that the view shows, durable on return, and replaces what
    /// was known of the view.
    ///
    /// # Errors
    ///
    /// There is more than is kept of one server, or what is pinned cannot be written.
    pub async fn finish(self, shown: &[Shown]) -> Result<Report, Error> {
        let kind = ItemKind::of(self.list);
        let (book, taken) = self.book.taking(self.view, kind, shown).await?;
        let mut state = book.known.state();
        let (_, blocks) = state.judge_all(self.view, kind, shown, self.changes);
        Ok(Report { taken, blocks })
    }
}
