//! What a server shows: items as they were listed, each in its one canonical form.

use std::sync::Arc;

use super::{By, Item, ItemKind};
use crate::mcp::{
    items::{List, Listed},
    scan::ScanError,
};

/// One item that a server showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What it is.
    pub kind: ItemKind,
    /// Its name, or `uriTemplate`; empty for instructions.
    pub name: Arc<str>,
    /// The definition; its version says nothing yet. An error where readers could disagree about what it says.
    pub item: Result<Item, ScanError>,
}

impl Shown {
    /// An item of a page.
    pub fn of(list: List, listed: &Listed<'_>) -> Self {
        Self::new(ItemKind::of(list), &listed.name, listed.definition.as_str())
    }

    /// The instructions of a server, a JSON string.
    pub fn instructions(text: &str) -> Self {
        Self::new(ItemKind::Instructions, "", text)
    }

    fn new(kind: ItemKind, name: &str, definition: &str) -> Self {
        let name: Arc<str> = name.into();
        Self {
            kind,
            item: Item::new(kind, name.clone(), definition, 0, By::FirstUse),
            name,
        }
    }
}
