//! What each view of a server was shown of each kind, as far as this process knows.

use std::{collections::HashMap, sync::Arc};

use ahash::RandomState;
use tokio::time::Instant;

use super::{
    Found, Item, ItemKind, MAX_TOOLS, MAX_VIEWS, PinnedTool, Reason, Shown, View,
    known::judged::Verdict, tool::Tool,
};
use crate::mcp::Era;

/// Names known in all views together, at most.
const KNOWN: usize = 4 * MAX_TOOLS;

/// All that is known of one server; of more than its bounds, what was read longest ago is forgotten.
#[derive(Debug, Default)]
pub(super) struct Sights {
    seen: Vec<Seen>,
    /// How often the server said of each kind that it changed.
    changes: [u64; ItemKind::ALL.len()],
}

/// What one view was shown of one kind.
#[derive(Debug)]
pub(super) struct Seen {
    view: View,
    kind: ItemKind,
    by_name: HashMap<Arc<str>, Standing, RandomState>,
    /// When the whole list was read last, and how often the server had said by then that it changed.
    pub(super) read: Option<(Instant, u64)>,
}

/// What an item that was shown is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    /// A tool, as pinned.
    Tool(Arc<Tool>),
    /// Anything else, as pinned, by its digest.
    Other([u8; 32]),
    /// It is not as pinned.
    Blocked(Reason),
}

impl Sights {
    /// What was shown to `view`.
    pub(super) fn of(&self, view: View, kind: ItemKind) -> Option<&Seen> {
        let mut seen = self.seen.iter();
        seen.find(|seen| seen.kind == kind && seen.view == view)
    }

    /// The same, unless the server has said since that it changed.
    pub(super) fn fresh(&self, view: View, kind: ItemKind) -> Option<&Seen> {
        let changes = self.changes(kind);
        self.of(view, kind).filter(|seen| !seen.is_stale(changes))
    }

    /// How often the server said that this kind changed.
    pub(super) fn changes(&self, kind: ItemKind) -> u64 {
        self.changes[kind as usize]
    }

    /// Takes down that it said so.
    pub(super) fn changed(&mut self, kind: ItemKind) {
        self.changes[kind as usize] += 1;
    }

    /// Whether some view is shown this, as far as is known.
    pub(super) fn shows(&self, item: &Item) -> bool {
        let of_kind = self.seen.iter().filter(|seen| seen.kind == item.kind);
        let mut standing = of_kind.filter_map(|seen| seen.by_name.get(&item.name));
        standing.any(|standing| match standing {
            Standing::Tool(tool) => tool.item().digest == item.digest,
            Standing::Other(digest) => *digest == item.digest,
            Standing::Blocked(_) => false,
        })
    }

    /// Learns what `view` was shown: `whole` replaces what was known. Of pages, none are added once there are
    /// [`MAX_TOOLS`]: a call for one that is missing has the whole list read.
    pub(super) fn learn(
        &mut self,
        view: View,
        kind: ItemKind,
        judged: (&[Shown], &[Verdict]),
        whole: Option<u64>,
    ) {
        let seen = self.of_mut(view, kind);
        if let Some(changes) = whole {
            seen.by_name.clear();
            seen.read = Some((Instant::now(), changes));
        }
        for (shown, verdict) in judged.0.iter().zip(judged.1) {
            let standing = match (verdict, &shown.item) {
                (Verdict::Pinned(Some(tool)), _) => Standing::Tool(tool.clone()),
                (Verdict::Pinned(None), Ok(item)) => Standing::Other(item.digest),
                (Verdict::Pinned(None), Err(_)) => continue,
                (Verdict::Blocked(reason), _) => Standing::Blocked(reason.clone()),
            };
            let has_room = seen.by_name.len() < MAX_TOOLS;
            if let Some(known) = seen.by_name.get_mut(&shown.name) {
                *known = standing;
            } else if has_room {
                seen.by_name.insert(shown.name.clone(), standing);
            }
        }
        self.bound(view, kind);
    }

    /// Forgets what every view was shown: what is pinned has changed.
    pub(super) fn forget(&mut self) {
        self.seen.clear();
    }

    fn of_mut(&mut self, view: View, kind: ItemKind) -> &mut Seen {
        let mut seen = self.seen.iter();
        let at = seen.position(|seen| seen.kind == kind && seen.view == view);
        let at = at.unwrap_or_else(|| {
            self.seen.push(Seen {
                view,
                kind,
                by_name: HashMap::default(),
                read: None,
            });
            self.seen.len() - 1
        });
        &mut self.seen[at]
    }

    fn bound(&mut self, view: View, kind: ItemKind) {
        let over = |all: &[Seen]| {
            let known: usize = all.iter().map(|seen| seen.by_name.len()).sum();
            all.len() > MAX_VIEWS || known > KNOWN
        };
        while self.seen.len() > 1 && over(&self.seen) {
            let others = self.seen.iter().enumerate();
            let oldest = others
                .filter(|(_, seen)| seen.view != view || seen.kind != kind)
                .min_by_key(|(_, seen)| seen.read.map(|(read, _)| read));
            match oldest {
                Some((at, _)) => drop(self.seen.swap_remove(at)),
                None => return,
            }
        }
    }
}

impl Seen {
    /// What the tool of this name is, for callers of `era`.
    pub(super) fn tool(&self, era: Era, name: &str) -> Found<PinnedTool> {
        match self.by_name.get(name) {
            Some(Standing::Tool(tool)) if tool.unfit(era).is_none() => {
                Found::Offered(PinnedTool::new(tool.clone()))
            }
            Some(Standing::Blocked(reason)) => Found::Blocked(reason.clone()),
            Some(_) | None => Found::Unknown,
        }
    }

    /// What anything else of this name is.
    pub(super) fn other(&self, name: &str) -> Found<()> {
        match self.by_name.get(name) {
            Some(Standing::Blocked(reason)) => Found::Blocked(reason.clone()),
            Some(_) => Found::Offered(()),
            None => Found::Unknown,
        }
    }

    /// Whether the server has said since the whole list was read that it changed; pages do not count.
    fn is_stale(&self, changes: u64) -> bool {
        changes > 0 && self.read.is_none_or(|(_, before)| before < changes)
    }
}
