//! Versions of the database: each change of its tables is one, made in one transaction and never undone.
//!
//! A change that was released is never edited; another one comes after it.

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, ffi};

use super::{grants, heads, sealed, sessions, vault};
use crate::vault::Mac;

/// Marks the file as Tollgate's ("tgdb"), where `file` and SQLite look for it.
pub(super) const APPLICATION: u32 = 0x7467_6462;

type Step = fn(&Transaction<'_>, &Mac) -> rusqlite::Result<()>;

/// Every change; the place, from 1, is the version it leads to.
const STEPS: &[Step] = &[
    pins,
    // Connections, and what else is sealed.
    grants::tables,
    sealed::tables,
    // What counts its changes, and shows of which keyring it is.
    vault::tables,
    // Browsers.
    sessions::tables,
];

/// What a file is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing was ever written to it.
    Empty,
    /// Something else's database.
    Foreign,
    /// A database of this version of the tables.
    Version(u32),
}

/// The last version that this program knows.
pub(super) const fn known() -> u32 {
    STEPS.len() as u32
}

/// Looks, and changes nothing.
pub(super) fn look(connection: &Connection) -> rusqlite::Result<Found> {
    let one = |sql| connection.query_row(sql, [], |row| row.get::<_, u32>(0));
    // In this order: another process may be making the tables, which have a mark as soon as they are there.
    let tables = one("SELECT count(*) FROM sqlite_schema")?;
    let application = one("SELECT application_id FROM pragma_application_id")?;
    if application != APPLICATION {
        let empty = application == 0 && tables == 0;
        return Ok(if empty { Found::Empty } else { Found::Foreign });
    }
    let version = connection
        .query_row("SELECT max(version) FROM migrations", [], |row| row.get(0))
        .optional()?;
    Ok(Found::Version(version.unwrap_or_default()))
}

/// Makes one change after the other, until the tables have the last version; of several processes, one makes each.
pub(super) fn migrate(connection: &mut Connection, mac: &Mac) -> rusqlite::Result<()> {
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version = match look(&transaction)? {
            Found::Version(version) => version,
            // It was looked at before, and became somebody else's since.
            Found::Foreign => return Err(foreign()),
            Found::Empty => {
                transaction.pragma_update(None, "application_id", APPLICATION)?;
                transaction.execute_batch(
                    "CREATE TABLE migrations (
                        version INTEGER PRIMARY KEY,
                        made_by TEXT NOT NULL
                    ) STRICT;",
                )?;
                0
            }
        };
        let Some(step) = STEPS.get(version as usize) else {
            return Ok(());
        };
        step(&transaction, mac)?;
        transaction.execute(
            "INSERT INTO migrations (version, made_by) VALUES (?1, ?2)",
            (version + 1, env!("CARGO_PKG_VERSION")),
        )?;
        transaction.commit()?;
    }
}

/// What SQLite says of a file that is none of its own.
fn foreign() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_NOTADB), None)
}

/// Version 1: what is pinned of each server, and the mark over all of it.
fn pins(transaction: &Transaction<'_>, mac: &Mac) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "CREATE TABLE pins (
            id INTEGER PRIMARY KEY,
            server TEXT NOT NULL,
            endpoint TEXT NOT NULL,
            version INTEGER NOT NULL,
            reviewed INTEGER NOT NULL,
            views BLOB NOT NULL,
            items INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            list BLOB NOT NULL,
            mac BLOB NOT NULL,
            UNIQUE (server, endpoint)
        ) STRICT;
        CREATE TABLE pin_items (
            pin INTEGER NOT NULL REFERENCES pins (id) DEFERRABLE INITIALLY DEFERRED,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            digest BLOB NOT NULL,
            version INTEGER NOT NULL,
            made_by TEXT NOT NULL,
            mac BLOB NOT NULL,
            definition TEXT NOT NULL,
            PRIMARY KEY (pin, kind, name, digest)
        ) STRICT;
        CREATE TABLE pins_of_all (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            servers INTEGER NOT NULL,
            list BLOB NOT NULL,
            mac BLOB NOT NULL
        ) STRICT;",
    )?;
    heads::Heads::default().write(transaction, mac)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::Keyring;

    #[test]
    fn what_became_somebody_elses_after_the_look_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let keyring = Keyring::open(&folder.path().join("keyring")).unwrap();
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(look(&connection).unwrap(), Found::Empty);
        connection
            .execute_batch("CREATE TABLE theirs (id INTEGER)")
            .unwrap();

        let error = migrate(&mut connection, &keyring.mac("store")).unwrap_err();

        assert_eq!(
            error.sqlite_error_code(),
            Some(rusqlite::ErrorCode::NotADatabase)
        );
        assert_eq!(look(&connection).unwrap(), Found::Foreign);
        let tables: u32 = connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 1);
    }
}
