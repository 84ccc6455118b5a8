//! What is pinned of a server: plain data, as it is stored and as a pins file says it.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::mcp::{canonical, scan::ScanError};

/// Views of one server whose first list was taken, at most.
pub const MAX_VIEWS: usize = 64;

/// Definitions of one name at most: servers show clients of another era, or with other capabilities, another one.
pub const MAX_VARIANTS: usize = 8;

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
