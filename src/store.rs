//! Owns: the database of this gateway, one SQLite file, and the one thread that uses it.
//! Imports: layers 0–3, for the traits that other rooms own and `vault`'s marks.
//! Never: believes a row whose mark does not hold, or changes a database that it does not know.
//! Fails as: [`Error`] at the start; then as the errors of the traits, with [`Unavailable`] inside.
//!
//! Whoever can write the file can take its rows away, and cannot grant himself anything: each row that grants something
//! carries a mark under a key of the keyring, over whose it is, its version and all its content; the row of a server
//! marks all of its items, and one row marks all servers. A row that was changed, added, taken away, given to another
//! server, or put back to an older state is found when it is next read. What is not found: a whole database of an earlier
//! day in the place of this one, or none at all, which is what a first start finds.

mod database;
mod failure;
mod file;
mod grants;
mod heads;
mod items;
mod migrations;
mod pins;
mod records;
mod reset;
mod sealed;
mod sessions;
mod vault;
mod worker;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use crate::{
    clock::{Clock, SystemClock},
    private::Loose,
    refusal::Code,
    telemetry::Metrics,
    vault::Keyring,
};
pub use reset::Forgotten;
use worker::Worker;

/// The database cannot be used. It is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A link, a folder, a pipe.
    #[error("`{}` is not a regular file, expected the database itself; put it back, or move this away to begin a new one", path.display())]
    NotAFile {
        /// The database, or what SQLite keeps beside it.
        path: PathBuf,
    },
    /// Others could read or change it.
    #[error(transparent)]
    Loose(#[from] Loose),
    /// A file of something else.
    #[error("`{}` is not a database of tollgate; name another file in [store] url, or move this away", path.display())]
    Foreign {
        /// The database.
        path: PathBuf,
    },
    /// It was written by a later version.
    #[error(
        "`{path}` has version {found}, expected at most {known}; run the version of tollgate that wrote it, or restore a \
         backup from before", path = path.display()
    )]
    Later {
        /// The database.
        path: PathBuf,
        /// The version it has.
        found: u32,
        /// The last version that this program knows.
        known: u32,
    },
    /// What is sealed in it is not of this keyring.
    #[error(
        "`{}` was sealed under another keyring, or under keys that this one has no more; restore the keyring that \
         belongs to it. Nothing was changed. If that is lost: `tollgate vault reset --forget-all`", path.display()
    )]
    Keyring {
        /// The database.
        path: PathBuf,
    },
    /// Its marks are not those of this keyring.
    #[error(
        "`{}` does not hold what this keyring marked: it was changed, or one of the two was replaced; restore both \
         from one backup, or move the database away to have every server pinned anew", path.display()
    )]
    Forged {
        /// The database.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot use `{}` as database; let this user read and write it, and write to its folder", path.display())]
    Unusable {
        /// The database.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// SQLite refused.
    #[error("cannot open the database `{}`; let this user write to its folder, and see that there is room", path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// The machine refuses a thread.
    #[error("cannot start the thread of the database")]
    Thread(#[source] io::Error),
}

impl Error {
    /// The code under which it is logged.
    pub fn code(&self) -> Code {
        match self {
            Self::Forged { .. } => Code::PinsUnusable,
            Self::Keyring { .. } => Code::VaultKey,
            _ => Code::StoreUnavailable,
        }
    }
}

/// Why one use of the database failed; nothing of it took effect.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// As much as may waits already.
    #[error("too much waits for the database; try again later")]
    Full,
    /// The thread has ended.
    #[error("the database is closed")]
    Closed,
    /// Another file stands in its place, or none, so that nothing written would be found again.
    #[error("`{}` was moved or replaced while tollgate runs; put it back, or restart tollgate", .0.display())]
    Moved(PathBuf),
    /// SQLite refused.
    #[error("the database refuses; see that its disk works and has room")]
    Sqlite(#[source] rusqlite::Error),
    /// It is older than it was.
    #[error(
        "the database is older than one that was in use here; run `tollgate vault accept-restore` once that is as it should be"
    )]
    Older,
    /// What counts its changes is not as it was written.
    #[error(
        "the database was changed by somebody else, or is of another keyring; restore a backup"
    )]
    Forged,
}

/// The database. What is asked of it waits in a bounded queue for the thread that uses it; dropping it waits for what
/// was asked.
pub struct Store {
    worker: Worker,
    /// Whether the database is older than one that was in use here, so that no connection is read or written.
    older: AtomicBool,
    /// How often anything sealed had been changed when it was opened.
    found: u64,
}

impl Store {
    /// Opens the database at `path`, which is absolute, makes one where there is none, and brings one of an earlier
    /// version up to date. Rows are marked and sealed under `keyring`.
    ///
    /// # Errors
    ///
    /// A database that is there and cannot be used stays as it is.
    pub fn open(path: &Path, keyring: &Keyring, metrics: Arc<Metrics>) -> Result<Self, Error> {
        Self::open_by(path, keyring, Arc::new(SystemClock), metrics)
    }

    /// The same, where leases and flows end by `clock`; all processes on one file have the same time.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    pub fn open_by(
        path: &Path,
        keyring: &Keyring,
        clock: Arc<dyn Clock>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, Error> {
        let database = database::Database::open(path, keyring, clock)?;
        let found = database.found;
        let worker = Worker::start(database, metrics).map_err(Error::Thread)?;
        let older = AtomicBool::new(false);
        Ok(Self {
            worker,
            older,
            found,
        })
    }

    /// Waits for what was asked and closes the file, so that all of it is in that one. What is asked later is refused.
    pub async fn close(&self) {
        self.worker.close().await;
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Store").finish_non_exhaustive()
    }
}
