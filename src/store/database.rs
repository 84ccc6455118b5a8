//! The connection: how SQLite is opened, and what it may not do.

use std::{
    io,
    ops::Deref,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, config::DbConfig,
    limits::Limit,
};

use super::{
    Error, Unavailable,
    failure::Failure,
    file::Own,
    heads::Heads,
    migrations::{self, Found},
    vault::{self, Check},
};
use crate::{
    clock::Clock,
    vault::{Keyring, Mac, Vault},
};

/// How long another process's write is waited for.
const BUSY: Duration = Duration::from_secs(5);

/// The longest text or row that is read or written, in bytes: more than the longest list of a server.
const LONGEST: i32 = 64 << 20;

/// What a use of the database may keep in memory of it, in KiB: a long list does not go to the disk twice.
const CACHE: i64 = 16 << 10;

/// An open database, up to date.
pub(super) struct Database {
    pub(super) connection: Connection,
    pub(super) file: Own,
    pub(super) mac: Mac,
    pub(super) vault: Vault,
    /// By which leases and flows end.
    clock: Arc<dyn Clock>,
    /// How often anything sealed had been changed when it was opened.
    pub(super) found: u64,
}

impl Database {
    /// Opens the database at `path`, once it is known to be one of `keyring`: until then nothing is written.
    pub(super) fn open(
        path: &Path,
        keyring: &Keyring,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let mut database = Self::open_any(path, keyring, clock)?;
        database
            .belongs()
            .and_then(|()| database.prepare())
            .map_err(|failure| failed(path, failure))?;
        Ok(database)
    }

    /// Opens the database at `path`, whatever keyring it is of; nothing is written to it.
    pub(super) fn open_any(
        path: &Path,
        keyring: &Keyring,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let file = Own::open(path)?;
        let look = || {
            let connection = connect(&file.path)?;
            let found = migrations::look(&connection)?;
            Ok((connection, found))
        };
        let (connection, found) = look().map_err(|source| sqlite(path, source))?;
        match found {
            Found::Foreign => return Err(Error::Foreign { path: path.into() }),
            Found::Version(found) if found > migrations::known() => {
                return Err(Error::Later {
                    path: path.into(),
                    found,
                    known: migrations::known(),
                });
            }
            Found::Empty | Found::Version(_) => {}
        }
        Ok(Self {
            connection,
            file,
            mac: keyring.mac("store"),
            vault: keyring.vault(),
            clock,
            found: 0,
        })
    }

    /// Whether what is there was written under this keyring.
    fn belongs(&mut self) -> Result<(), Misfit> {
        let transaction = self.connection.transaction()?;
        if vault::look(&transaction, &self.vault)? == Check::Theirs {
            return Err(Misfit::Keyring);
        }
        if migrations::look(&transaction)? != Found::Empty {
            Heads::read(&transaction, &self.mac)?;
        }
        Ok(())
    }

    /// Brings the tables up to date.
    pub(super) fn migrate(&mut self) -> rusqlite::Result<()> {
        write_ahead(&self.connection)?;
        migrations::migrate(&mut self.connection, &self.mac)
    }

    fn prepare(&mut self) -> Result<(), Misfit> {
        self.migrate()?;
        self.seal_check()?;
        self.found = vault::changes(&self.connection, &self.mac)?;
        Ok(())
    }

    /// Seals the check under the primary key, where it is not.
    pub(super) fn seal_check(&mut self) -> Result<(), Misfit> {
        self.vault.follow();
        let immediate = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(immediate)?;
        match vault::look(&transaction, &self.vault)? {
            Check::Ours => return Ok(()),
            Check::Theirs => return Err(Misfit::Keyring),
            Check::Absent | Check::Older => vault::seal(&transaction, &self.vault)?,
        }
        Ok(transaction.commit()?)
    }

    /// Begins to change what is sealed.
    pub(super) fn change(&mut self) -> rusqlite::Result<Change<'_>> {
        let immediate = TransactionBehavior::Immediate;
        Ok(Change {
            transaction: self.connection.transaction_with_behavior(immediate)?,
            mac: &self.mac,
        })
    }

    /// Unix seconds.
    pub(super) fn now(&self) -> i64 {
        self.clock.unix()
    }

    /// Gives back the memory that was used; the next use is seldom near.
    pub(super) fn rest(&self) {
        // Where this fails it costs nothing but the memory.
        drop(self.connection.execute_batch("PRAGMA shrink_memory"));
    }
}

/// A change of what is sealed, which is counted.
pub(super) struct Change<'d> {
    transaction: Transaction<'d>,
    mac: &'d Mac,
}

impl Change<'_> {
    /// Counts it and makes it last.
    pub(super) fn commit(self) -> Result<(), Failure> {
        vault::changed(&self.transaction, self.mac)?;
        Ok(self.transaction.commit()?)
    }
}

impl<'d> Deref for Change<'d> {
    type Target = Transaction<'d>;

    fn deref(&self) -> &Self::Target {
        &self.transaction
    }
}

/// Why a database cannot be used with a keyring.
#[derive(Debug)]
pub(super) enum Misfit {
    /// It was sealed under another one.
    Keyring,
    /// It cannot be used at all.
    Other(Failure),
}

impl<E: Into<Failure>> From<E> for Misfit {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

fn failed(path: &Path, misfit: Misfit) -> Error {
    let path = path.to_owned();
    match misfit {
        Misfit::Keyring => Error::Keyring { path },
        Misfit::Other(Failure::Forged) => Error::Forged { path },
        Misfit::Other(Failure::Unavailable(Unavailable::Sqlite(source))) => sqlite(&path, source),
        Misfit::Other(Failure::Unavailable(why)) => Error::Unusable {
            path,
            source: io::Error::other(why),
        },
    }
}

pub(super) fn sqlite(path: &Path, source: rusqlite::Error) -> Error {
    let path = path.to_owned();
    match &source {
        rusqlite::Error::SqliteFailure(error, _) if error.code == ErrorCode::NotADatabase => {
            Error::Foreign { path }
        }
        _ => Error::Sqlite { path, source },
    }
}

/// Opens a file that is there. Nothing that somebody wrote into its schema runs: no trigger, no view, no function.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.pragma_update(None, "cache_size", -CACHE)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Every commit is on disk before it is answered.
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

/// Readers and a writer do not wait for one another.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let begun = Instant::now();
    loop {
        let switched = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match switched {
            // For this lock SQLite does not wait by itself, and several processes may start at once.
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && begun.elapsed() < BUSY =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            switched => return switched.map(drop),
        }
    }
}
