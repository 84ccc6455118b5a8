//! What a server shows that is not pinned: kept, so that an operator can look at it and accept it, and told once.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use super::{Item, ItemKind, MAX_BYTES, MAX_ITEMS, Pinned, View};
use crate::{mcp::scan::ScanError, refusal::Code};

/// Why an item is not offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Something else is pinned under its name.
    #[error("it is not as it was pinned")]
    Drifted,
    /// Nothing is pinned under its name.
    #[error("nobody has reviewed it")]
    Unreviewed,
    /// Readers could disagree about what its definition says.
    #[error("its definition is not valid: {0}")]
    Unusable(ScanError),
}

impl Reason {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::Drifted => Code::Drifted,
            Self::Unreviewed => Code::Unreviewed,
            Self::Unusable(_) => Code::UpstreamMalformed,
        }
    }

    /// The word for it in records and metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Drifted => "drifted",
            Self::Unreviewed => "unreviewed",
            Self::Unusable(_) => "unusable",
        }
    }
}

/// An item that is not offered, to be told of once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub kind: ItemKind,
    /// Its name.
    pub name: Arc<str>,
    /// Why.
    pub reason: Reason,
}

/// By what definitions are told apart; no digest for what has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    kind: ItemKind,
    name: Arc<str>,
    digest: Option<[u8; 32]>,
}

/// What of one server is not offered.
#[derive(Debug, Default)]
pub(super) struct Blocked {
    /// What could be accepted, and the view that showed it last.
    kept: BTreeMap<Key, (Item, View)>,
    bytes: usize,
    told: HashSet<Key>,
}

impl Blocked {
    /// Takes down what `view` shows. True where it is to be told of.
    pub(super) fn note(&mut self, view: View, block: &Block, item: Option<&Item>) -> bool {
        let key = Key {
            kind: block.kind,
            name: block.name.clone(),
            digest: item.map(|item| item.digest),
        };
        if let Some(item) = item {
            let has_room =
                self.kept.len() < MAX_ITEMS && self.bytes + item.definition.len() <= MAX_BYTES;
            if let Some((_, seen_by)) = self.kept.get_mut(&key) {
                *seen_by = view;
            } else if has_room {
                self.bytes += item.definition.len();
                self.kept.insert(key.clone(), (item.clone(), view));
            }
        }
        self.told.len() < MAX_ITEMS && self.told.insert(key)
    }

    /// Forgets what of a kind `view` showed before: its whole list is read anew.
    pub(super) fn begin(&mut self, view: View, kind: ItemKind) {
        self.retain(|item, seen_by| item.kind != kind || seen_by != view);
    }

    /// Forgets what is pinned now.
    pub(super) fn settle(&mut self, pinned: &Pinned) {
        self.retain(|item, _| pinned.find(item).is_none());
    }

    /// Whether it holds this definition.
    pub(super) fn holds(&self, item: &Item) -> bool {
        self.kept.contains_key(&Key {
            kind: item.kind,
            name: item.name.clone(),
            digest: Some(item.digest),
        })
    }

    /// What could be accepted, by kind and name.
    pub(super) fn items(&self) -> impl Iterator<Item = &Item> {
        self.kept.values().map(|(item, _)| item)
    }

    fn retain(&mut self, keep: impl Fn(&Item, View) -> bool) {
        self.kept.retain(|_, (item, view)| keep(item, *view));
        let sizes = self.items().map(|item| item.definition.len());
        self.bytes = sizes.sum();
    }
}
