//! What is pinned of a server: plain data, as it is stored and as a pins file says it.

use std::{collections::HashMap, sync::Arc};

use sha2::{Digest, Sha256};

use crate::mcp::{canonical, items::List, scan::ScanError, tools};

/// Marks of views whose first list was taken, at most: 64 views, each with its lists of tools, prompts and templates and
/// its instructions.
pub const MAX_VIEWS: usize = 256;

/// Definitions of one name at most: servers show clients of another era, or with other capabilities, another one.
pub const MAX_VARIANTS: usize = 8;

/// Definitions of one server at most.
pub const MAX_ITEMS: usize = 65_536;

/// Bytes of the definitions of one server at most.
pub const MAX_BYTES: usize = 32 << 20;

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource template.
    Template,
    /// What the server says of itself to a model.
    Instructions,
}

impl ItemKind {
    /// Every kind, in the order in which items are kept.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Prompt, Self::Template, Self::Instructions];

    /// The word for it in files and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Template => "template",
            Self::Instructions => "instructions",
        }
    }

    /// What a list holds.
    pub fn of(list: List) -> Self {
        match list {
            List::Tools => Self::Tool,
            List::Prompts => Self::Prompt,
            List::Templates => Self::Template,
        }
    }

    /// The kind of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Who accepted an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Nobody: it stood in the first list of a view.
    FirstUse,
    /// An operator.
    Operator,
}

impl By {
    /// The word for it in files and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FirstUse => "first-use",
            Self::Operator => "operator",
        }
    }

    /// Who this word stands for.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::FirstUse, Self::Operator]
            .into_iter()
            .find(|by| by.as_str() == word)
    }
}

/// One definition that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// Its name; the `uriTemplate` of a template; empty for instructions.
    pub name: Arc<str>,
    /// The whole definition as canonical JSON; of instructions, the string.
    pub definition: Arc<str>,
    /// SHA-256 of the definition.
    pub digest: [u8; 32],
    /// The version of the catalogue at which it was accepted.
    pub version: u64,
    /// Who accepted it.
    pub by: By,
}

impl Item {
    /// An item with this definition, a JSON text of any form.
    ///
    /// # Errors
    ///
    /// What the canonical form refuses: see [`canonical`](mod@crate::mcp::canonical).
    pub fn new(
        kind: ItemKind,
        name: Arc<str>,
        definition: &str,
        version: u64,
        by: By,
    ) -> Result<Self, ScanError> {
        let text = canonical::canonical(definition.as_bytes())?;
        let definition: Arc<str> = String::from_utf8(text)
            .expect("the canonical form of UTF-8 is UTF-8")
            .into();
        Ok(Self {
            kind,
            name,
            digest: Sha256::digest(definition.as_bytes()).into(),
            definition,
            version,
            by,
        })
    }

    /// Whether it is a tool whose definition says `readOnlyHint`.
    pub fn read_only_hint(&self) -> bool {
        self.kind == ItemKind::Tool
            && tools::Tool::read(&self.definition).is_ok_and(|tool| tool.read_only_hint)
    }

    /// By what items are ordered, and told apart.
    pub fn key(&self) -> (ItemKind, &str, &[u8; 32]) {
        (self.kind, &self.name, &self.digest)
    }
}

/// What is pinned of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    /// Rises by one with every change.
    pub version: u64,
    /// An operator accepted something: first use is over.
    pub reviewed: bool,
    /// The views whose first list was taken, at most [`MAX_VIEWS`].
    pub views: Vec<[u8; 32]>,
    /// In the order of [`Item::key`]; at most [`MAX_VARIANTS`] of one kind and name.
    pub items: Vec<Item>,
}

impl Pinned {
    /// What is pinned under this name.
    pub fn named(&self, kind: ItemKind, name: &str) -> &[Item] {
        let key = |item: &Item| (item.kind, &*item.name).cmp(&(kind, name));
        let start = self.items.partition_point(|item| key(item).is_lt());
        let len = self.items[start..].partition_point(|item| key(item).is_eq());
        &self.items[start..start + len]
    }

    /// What is pinned with this definition.
    pub fn find(&self, item: &Item) -> Option<&Item> {
        self.items
            .binary_search_by(|pinned| pinned.key().cmp(&item.key()))
            .ok()
            .map(|at| &self.items[at])
    }

    /// Of what is pinned under this name, what was accepted last.
    pub fn newest(&self, kind: ItemKind, name: &str) -> Option<&Item> {
        let named = self.named(kind, name).iter();
        named.max_by_key(|item| item.version)
    }

    /// Whether nothing more is taken because a view of this mark shows it for the first time.
    pub(super) fn is_settled(&self, mark: &[u8; 32]) -> bool {
        self.reviewed || self.views.len() >= MAX_VIEWS || self.views.contains(mark)
    }

    /// The next version: with the view of this mark taken, and of what it shows all that is not pinned yet.
    pub(super) fn taking<'i>(
        &self,
        mark: [u8; 32],
        shown: impl IntoIterator<Item = &'i Item>,
    ) -> Self {
        let mut next = self.clone();
        next.version += 1;
        next.views.push(mark);
        let mut variants: HashMap<(ItemKind, &str), usize> = HashMap::new();
        for item in shown {
            let count = variants
                .entry((item.kind, &item.name))
                .or_insert_with(|| self.named(item.kind, &item.name).len());
            if self.find(item).is_none() && *count < MAX_VARIANTS {
                *count += 1;
                next.items.push(Item {
                    version: next.version,
                    ..item.clone()
                });
            }
        }
        next.sort();
        next
    }

    /// Brings the items into their order; of equal ones the first stays.
    pub(super) fn sort(&mut self) {
        self.items.sort_by(|one, other| one.key().cmp(&other.key()));
        self.items
            .dedup_by(|later, first| later.key() == first.key());
    }

    /// Whether it is more than is kept of one server.
    pub(super) fn is_too_large(&self) -> bool {
        let bytes: usize = self.items.iter().map(|item| item.definition.len()).sum();
        self.items.len() > MAX_ITEMS || bytes > MAX_BYTES
    }
}
