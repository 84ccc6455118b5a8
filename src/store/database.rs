//! The connection: how SQLite is opened, and what it may not do.

use std::{io, path::Path, time::Duration};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig, limits::Limit};

use super::{
    Error, Unavailable,
    failure::Failure,
    file::Own,
    heads::Heads,
    migrations::{self, Found},
};
use crate::vault::Mac;

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
}

impl Database {
    pub(super) fn open(path: &Path, mac: Mac) -> Result<Self, Error> {
        let file = Own::open(path)?;
        let sqlite = |source| match &source {
            rusqlite::Error::SqliteFailure(error, _) if error.code == ErrorCode::NotADatabase => {
                Error::Foreign { path: path.into() }
            }
            _ => Error::Sqlite {
                path: path.into(),
                source,
            },
        };
        let mut connection = connect(&file.path).map_err(sqlite)?;
        match migrations::look(&connection).map_err(sqlite)? {
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
        write_ahead(&connection).map_err(sqlite)?;
        migrations::migrate(&mut connection, &mac).map_err(sqlite)?;
        let transaction = connection.transaction().map_err(sqlite)?;
        match Heads::read(&transaction, &mac) {
            Ok(_) => {}
            Err(Failure::Forged) => return Err(Error::Forged { path: path.into() }),
            Err(Failure::Unavailable(Unavailable::Sqlite(source))) => return Err(sqlite(source)),
            Err(Failure::Unavailable(why)) => {
                return Err(Error::Unusable {
                    path: path.into(),
                    source: io::Error::other(why),
                });
            }
        }
        drop(transaction);
        Ok(Self {
            connection,
            file,
            mac,
        })
    }

    /// Gives back the memory that was used; the next use is seldom near.
    pub(super) fn rest(&self) {
        // Where this fails it costs nothing but the memory.
        drop(self.connection.execute_batch("PRAGMA shrink_memory"));
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
    connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))?;
    Ok(())
}
