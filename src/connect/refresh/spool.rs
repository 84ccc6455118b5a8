//! New tokens that the database would not take: sealed, on the local disk, until it does.
//!
//! A provider that rotates refresh tokens has forgotten the old one by the time it gives the new one. What cannot be
//! saved is therefore kept here, with the digest of the token that it was got with: the result is written over exactly
//! that, or over what is older.

mod file;

use std::{
    collections::{BTreeMap, HashMap},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use uuid::Uuid;

use crate::{
    audit::{Kind, OutcomeKind},
    connect::{
        GrantKey, GrantRow, GrantState, Inner, RecordsError, Revoked, disconnect,
        kept::{
            grant::{self, Payload},
            known::Known,
        },
    },
    id,
    policy::Permit,
    vault::{Kid, Vault},
};

/// Results at most; further ones have only the database.
const MAX: usize = 1024;

/// How often a row is looked at while others write it.
const TRIES: usize = 4;

/// What waits for the database, here and in the folder.
pub(in crate::connect) struct Spool {
    folder: PathBuf,
    held: Mutex<HashMap<Uuid, Arc<Held>>>,
}

/// A refreshed connection.
pub(in crate::connect) struct Held {
    /// The row as it is to be.
    pub(super) known: Arc<Known>,
    /// The digest of the refresh token that it was got with.
    pub(super) consumed: [u8; 32],
    /// Whether it is this process's own result, and nobody ended the connection since: it may be used as it is.
    usable: AtomicBool,
}

/// What became of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// The database has it.
    Saved,
    /// The database has something newer.
    Newer,
    /// Its connection is gone, or another now: the provider was told to forget it.
    Revoked,
    /// The same, and nobody was there for whom the provider could be asked.
    Orphan,
}

/// How many results in the spool at `folder` need each key to be opened.
///
/// # Errors
///
/// The file system refuses.
pub fn spooled(folder: &Path, vault: &Vault) -> io::Result<BTreeMap<Kid, u64>> {
    file::keys(folder, vault, MAX)
}

impl Held {
    pub(super) fn new(known: Arc<Known>, consumed: [u8; 32]) -> Self {
        Self {
            known,
            consumed,
            usable: AtomicBool::new(true),
        }
    }
}

impl Spool {
    pub(in crate::connect) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            held: Mutex::default(),
        }
    }

    /// Takes up what an earlier process left; each has to be settled before it is used.
    pub(in crate::connect) fn take_up(&self, inner: &Inner) {
        let found = match file::read_all(&self.folder, &inner.vault, MAX) {
            Ok(found) => found,
            Err(error) => {
                tracing::error!(%error, folder = %self.folder.display(), "the spool of tokens cannot be read");
                return;
            }
        };
        for (row, consumed) in found {
            let held = Held {
                known: Arc::new(Known::of(inner, row)),
                consumed,
                usable: AtomicBool::new(false),
            };
            self.all().insert(held.known.row.record, Arc::new(held));
        }
    }

    /// Puts a result on the disk and holds it here. It is durable on return.
    pub(super) async fn keep(&self, inner: &Inner, held: Arc<Held>) -> io::Result<()> {
        let record = held.known.row.record;
        if self.all().len() >= MAX {
            return Err(io::Error::other("the spool is full"));
        }
        let sealed = file::sealed(&inner.vault, &held.known.row, &held.consumed);
        let folder = self.folder.clone();
        let write = move || file::write(&folder, record, &sealed);
        inner.runtime.spawn_blocking(write).await??;
        self.all().insert(record, held);
        Ok(())
    }

    /// What is held of a connection.
    pub(super) fn of(&self, key: &GrantKey) -> Vec<Arc<Held>> {
        let all = self.all();
        let of = all.values().filter(|held| held.known.row.key == *key);
        of.cloned().collect()
    }

    /// Everything that is held.
    pub(in crate::connect) fn everything(&self) -> Vec<Arc<Held>> {
        self.all().values().cloned().collect()
    }

    /// The connection as it stands in a result of this process that the database has not taken yet.
    pub(in crate::connect) fn known(&self, key: &GrantKey) -> Option<Arc<Known>> {
        let held = self.of(key);
        let usable = held.iter().find(|held| held.usable.load(Ordering::Relaxed));
        usable.map(|held| held.known.clone())
    }

    /// Whether something is held that has to be settled before the connection is used.
    pub(in crate::connect) fn unsettled(&self, key: &GrantKey) -> bool {
        let held = self.of(key);
        held.iter().any(|held| !held.usable.load(Ordering::Relaxed))
    }

    /// Nothing that is held of the connection is used any more, until the database has the last word.
    pub(in crate::connect) fn distrust(&self, key: &GrantKey) {
        for held in self.of(key) {
            held.usable.store(false, Ordering::Relaxed);
        }
    }

    fn done(&self, record: Uuid) {
        if let Err(error) = file::remove(&self.folder, record) {
            tracing::error!(%error, %record, "a result that is settled stays in the spool");
        }
        self.all().remove(&record);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Held>>> {
        // Each change is one insert or remove: the map is whole.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Brings a result into the database, or finds out that it does not belong there any more. Of two results the one that was
/// obtained later stays; one of another connection is revoked and never stored.
///
/// # Errors
///
/// The database does not work; the result stays where it is.
pub(super) async fn settle(
    inner: &Inner,
    permit: Option<&Permit>,
    held: &Held,
) -> Result<Settled, RecordsError> {
    let settled = compare(inner, permit, held).await?;
    if settled != Settled::Orphan {
        inner.spool.done(held.known.row.record);
    }
    Ok(settled)
}

async fn compare(
    inner: &Inner,
    permit: Option<&Permit>,
    held: &Held,
) -> Result<Settled, RecordsError> {
    let ours = &held.known.row;
    for _ in 0..TRIES {
        let theirs = inner.records.grant(&ours.key).await?;
        // One that ended because another issuer stands in its place is as good as gone: nothing of it comes back.
        let ended = GrantState::NeedsReconnect("issuer_changed");
        let same = |theirs: &GrantRow| {
            theirs.record == ours.record && theirs.grant == ours.grant && theirs.state != ended
        };
        let Some(theirs) = theirs.filter(same) else {
            return Ok(revoke(inner, permit, ours).await);
        };
        if theirs.version == ours.version && theirs.sealed == ours.sealed {
            return Ok(Settled::Saved);
        }
        let Some(payload) = held.known.open(inner) else {
            return Ok(Settled::Newer);
        };
        if !replaces(inner, &payload, held.consumed, &theirs) {
            return Ok(Settled::Newer);
        }
        let mut row = ours.clone();
        row.version = theirs.version + 1;
        row.sealed = grant::seal(&inner.vault, &row, &payload);
        row.kid = grant::kid(&row.sealed);
        if inner.records.overwrite(theirs.version, &row).await? {
            let known = Arc::new(Known::of(inner, row));
            inner.cache.put(&ours.key, known);
            return Ok(Settled::Saved);
        }
    }
    Err(RecordsError(
        "others write the same connection all the time".into(),
    ))
}

/// Whether our result stands above what is stored: that is the very token it was got with, or was obtained earlier.
fn replaces(inner: &Inner, ours: &Payload, consumed: [u8; 32], theirs: &GrantRow) -> bool {
    // What does not open is of no use to anybody.
    let Ok(stored) = grant::open(&inner.vault, theirs) else {
        return true;
    };
    let found = stored.refresh_digest();
    if found == Some(consumed) || ours.obtained_at >= stored.obtained_at {
        return true;
    }
    let digest = |digest: Option<[u8; 32]>| digest.map(|digest| id::hex(&digest[..8]));
    tracing::warn!(
        server = %theirs.key.server,
        stored = digest(found),
        ours = digest(ours.refresh_digest()),
        "two processes refreshed one connection; the later result stays"
    );
    false
}

async fn revoke(inner: &Inner, permit: Option<&Permit>, ours: &GrantRow) -> Settled {
    let Some(permit) = permit else {
        return Settled::Orphan;
    };
    let outcome = match disconnect::revoke_row(inner, permit, ours).await {
        Revoked::Yes | Revoked::Unsupported => OutcomeKind::Allowed,
        Revoked::No => OutcomeKind::Failed,
    };
    inner.note(Kind::Credential, "revoked", &ours.key, (outcome, None));
    Settled::Revoked
}
