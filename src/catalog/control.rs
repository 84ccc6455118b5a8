//! What an operator does with pins: looks at them, and accepts what was seen.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{By, Catalog, Error, Item, ItemKind, MAX_VARIANTS, Pinned, known::State};
use crate::{id, policy::Server};

/// What is pinned of a server, and what this process last saw of it that is not.
#[derive(Clone, Debug)]
pub struct Overview {
    /// What is pinned; version 0 where nothing is.
    pub pinned: Arc<Pinned>,
    /// What is shown and not offered, by kind and name.
    pub blocked: Vec<Item>,
}

/// What an operator accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accept {
    /// Everything that is pinned or was seen.
    All,
    /// What has these names, of whatever kind.
    Named(Vec<Chosen>),
}

/// So many digits of a digest are shown, and at least so many name a definition: a server can make others that begin
/// with fewer.
pub const DIGITS: usize = 16;

/// What is accepted under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The name.
    pub name: Arc<str>,
    /// Only the definition whose SHA-256 begins with these hexadecimal digits; what else is seen under the name, now or
    /// since it was looked at, is not accepted.
    pub digest: Option<String>,
}

impl Chosen {
    /// What `NAME` or `NAME@DIGEST` stands for. The text alone decides, never what the server shows: it may well show
    /// something that is named `NAME@DIGEST`.
    pub fn read(written: &str) -> Self {
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let parts = written.rsplit_once('@');
        let parts = parts.filter(|(_, digest)| digest.len() >= DIGITS && digest.bytes().all(hex));
        let (name, digest) = parts.map_or((written, None), |(name, digest)| (name, Some(digest)));
        Self {
            name: name.into(),
            digest: digest.map(str::to_owned),
        }
    }

    fn covers(&self, item: &Item) -> bool {
        let digest = self.digest.as_deref();
        item.name == self.name
            && digest.is_none_or(|digest| id::hex(&item.digest).starts_with(digest))
    }
}

impl Accept {
    fn covers(&self, item: &Item) -> bool {
        match self {
            Self::All => true,
            Self::Named(chosen) => chosen.iter().any(|chosen| chosen.covers(item)),
        }
    }
}

impl Catalog {
    /// What is pinned of a server, and what was last seen that is not. Definitions that have no canonical form cannot be
    /// accepted and are not in it.
    ///
    /// # Errors
    ///
    /// What is pinned cannot be read.
    pub async fn overview(&self, server: &Server) -> Result<Overview, Error> {
        let known = self.known(server);
        let pinned = known.pinned(&*self.ledger).await?;
        let blocked = known.state().blocked.items().cloned().collect();
        Ok(Overview { pinned, blocked })
    }

    /// Accepts what was seen: the next version of the pins, in which first use is over. Of what has the name of an
    /// accepted item, definitions that no view is shown any more go. It is durable on return, but for a server whose
    /// pins are in a file, which the caller is to write.
    ///
    /// # Errors
    ///
    /// A name that was neither seen nor pinned; pins that cannot be read or written.
    pub async fn accept(&self, server: &Server, what: &Accept) -> Result<Arc<Pinned>, Error> {
        let known = self.known(server);
        let name = &known.name;
        let next = |pinned: &Pinned, state: &State| accepting(name, pinned, state, what);
        if known.is_file() {
            let pinned = known.pinned(&*self.ledger).await?;
            let next = next(&pinned, &known.state())?;
            return Ok(next.map_or(pinned, Arc::new));
        }
        let changed = known.change(&*self.ledger, next).await?;
        // Every view is read anew before anything of it is called.
        known.state().sights.forget();
        match changed {
            Some(pinned) => Ok(pinned),
            None => known.pinned(&*self.ledger).await,
        }
    }
}

fn accepting(
    server: &Arc<str>,
    pinned: &Pinned,
    state: &State,
    what: &Accept,
) -> Result<Option<Pinned>, Error> {
    let seen: Vec<&Item> = state
        .blocked
        .items()
        .filter(|item| what.covers(item))
        .collect();
    if let Accept::Named(chosen) = what {
        for chosen in chosen {
            check(server, pinned, state, chosen)?;
        }
    }
    let version = pinned.version + 1;
    let taken: HashSet<(ItemKind, &str)> = seen.iter().map(|new| (new.kind, &*new.name)).collect();
    let mut next = Pinned {
        version,
        reviewed: true,
        ..pinned.clone()
    };
    let replaced = |old: &Item| taken.contains(&(old.kind, &*old.name)) && !state.sights.shows(old);
    next.items.retain(|old| !replaced(old));
    for item in next.items.iter_mut().filter(|item| what.covers(item)) {
        item.by = By::Operator;
    }
    let mut more = Vec::new();
    let mut variants: HashMap<(ItemKind, &str), usize> = HashMap::new();
    for new in seen {
        let count = variants
            .entry((new.kind, &new.name))
            .or_insert_with(|| next.named(new.kind, &new.name).len());
        if *count < MAX_VARIANTS {
            *count += 1;
            more.push(Item {
                version,
                by: By::Operator,
                ..new.clone()
            });
        }
    }
    next.items.extend(more);
    next.sort();
    Ok(Some(next))
}

/// What is chosen was seen; where another definition was seen in its place, what is pinned does not do.
fn check(server: &Arc<str>, pinned: &Pinned, state: &State, chosen: &Chosen) -> Result<(), Error> {
    let seen = || {
        let items = state.blocked.items();
        items.filter(|item| item.name == chosen.name)
    };
    if seen().any(|item| chosen.covers(item)) {
        return Ok(());
    }
    if let (Some(digest), Some(other)) = (&chosen.digest, seen().next()) {
        return Err(Error::Other {
            server: server.clone(),
            name: chosen.name.clone(),
            digest: digest.clone(),
            found: id::hex(&other.digest),
        });
    }
    if pinned.items.iter().any(|item| chosen.covers(item)) {
        return Ok(());
    }
    Err(Error::Unseen {
        server: server.clone(),
        name: chosen.name.clone(),
    })
}
