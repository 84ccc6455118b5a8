//! Owns: what was reviewed of each server, what of that each view of it is known to be shown, and what is not offered.
//! Imports: layers 0–1.
//! Never: contacts a server; `gateway` reads lists and shows them here. Never offers what is not pinned.
//! Fails as: [`Error`].

mod blocked;
mod book;
mod control;
mod diff;
mod error;
mod known;
mod ledger;
mod pinned;
pub mod pins_file;
mod schema;
mod seen;
mod shown;
mod suspicion;
mod tool;
mod view;

use std::sync::Arc;

use ahash::RandomState;
pub use blocked::{Block, Reason};
pub use book::{Book, Judged, Report, Taken, Turn};
pub use control::{Accept, Chosen, DIGITS, Overview};
use dashmap::DashMap;
pub use diff::{Change, diff};
pub use error::Error;
use known::Known;
pub use ledger::{Ledger, LedgerError, ServerKey};
pub use pinned::{By, Item, ItemKind, MAX_BYTES, MAX_ITEMS, MAX_VARIANTS, MAX_VIEWS, Pinned};
pub use schema::{Arguments, Schema, Schemas};
pub use shown::Shown;
pub use suspicion::{Others, Suspicion, suspicions};
pub use tool::PinnedTool;
pub use view::View;

use crate::{
    mcp::{Era, items::List},
    policy::{Permit, Server},
};

/// Tools of one list at most.
pub const MAX_TOOLS: usize = 16_384;

/// What is known of every server, shared by all workers. Bounded by the servers that policy names, and for each by
/// [`MAX_ITEMS`] and [`MAX_BYTES`].
#[derive(Debug)]
pub struct Catalog {
    servers: DashMap<Arc<str>, Arc<Known>, RandomState>,
    ledger: Arc<dyn Ledger>,
    schemas: Arc<Schemas>,
}

/// What something that is asked for by name is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// The view was shown it as it is pinned.
    Offered(T),
    /// The view was shown it, and it is not offered.
    Blocked(Reason),
    /// The view was not shown it, or the server has said since that its list changed.
    Unknown,
}

impl Catalog {
    /// Nothing known yet; pins are kept in `ledger`.
    pub fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self {
            servers: DashMap::default(),
            ledger,
            schemas: Arc::default(),
        }
    }

    /// The tool of this name, as `view` was shown it last and callers of `era` can use it; nothing is known once the
    /// server has said that its tools changed.
    pub fn find(&self, permit: &Permit, view: View, era: Era, name: &str) -> Found<PinnedTool> {
        let known = self.known(permit.server());
        let state = known.state();
        let seen = state.sights.fresh(view, ItemKind::Tool);
        seen.map_or(Found::Unknown, |seen| seen.tool(era, name))
    }

    /// The same of the list that was read last, whatever the server has said since.
    pub fn find_read(
        &self,
        permit: &Permit,
        view: View,
        era: Era,
        name: &str,
    ) -> Found<PinnedTool> {
        let known = self.known(permit.server());
        let state = known.state();
        let seen = state.sights.of(view, ItemKind::Tool);
        seen.map_or(Found::Unknown, |seen| seen.tool(era, name))
    }

    /// What of `list`, which is not that of tools, has this name, as `view` was shown it last; nothing is known once the
    /// server has said that the list changed.
    pub fn find_other(&self, permit: &Permit, view: View, list: List, name: &str) -> Found<()> {
        let known = self.known(permit.server());
        let state = known.state();
        let seen = state.sights.fresh(view, ItemKind::of(list));
        seen.map_or(Found::Unknown, |seen| seen.other(name))
    }

    /// The same of the list that was read last, whatever the server has said since.
    pub fn find_other_read(
        &self,
        permit: &Permit,
        view: View,
        list: List,
        name: &str,
    ) -> Found<()> {
        let known = self.known(permit.server());
        let state = known.state();
        let seen = state.sights.of(view, ItemKind::of(list));
        seen.map_or(Found::Unknown, |seen| seen.other(name))
    }

    /// What is pinned of a server, read from where it is kept if it was not read yet.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is not as this gateway wrote it: then nothing of the server is offered.
    pub async fn open(&self, server: &Server) -> Result<Book, Error> {
        Book::open(self.known(server), self.ledger.clone()).await
    }

    /// Takes down that a server says this list changed: what was seen of it is worth nothing any more.
    pub fn changed(&self, server: &Server, list: List) {
        let known = self.known(server);
        known.state().sights.changed(ItemKind::of(list));
    }

    /// The names of the tools of all servers but `server`, as far as this process knows what is pinned of them.
    pub fn others(&self, server: &str) -> Others {
        let mut others = Others::default();
        for known in self.servers.iter().filter(|known| *known.name != *server) {
            if let Some(pinned) = known.state().pinned() {
                others.add(&known.name, pinned.items.iter());
            }
        }
        others
    }

    /// Where arguments are checked against the schemas of tools.
    pub fn schemas(&self) -> &Arc<Schemas> {
        &self.schemas
    }

    /// Forgets servers that policy no longer names.
    pub fn retain(&self, named: impl Fn(&str) -> bool) {
        self.servers.retain(|name, _| named(name));
    }

    fn known(&self, server: &Server) -> Arc<Known> {
        if let Some(known) = self.servers.get(&server.name)
            && known.is_of(server)
        {
            return known.clone();
        }
        let fresh = Arc::new(Known::new(server));
        let mut entry = self
            .servers
            .entry(server.name.clone())
            .or_insert_with(|| fresh.clone());
        if !entry.is_of(server) {
            *entry = fresh;
        }
        entry.clone()
    }
}

#[cfg(test)]
mod tests;
