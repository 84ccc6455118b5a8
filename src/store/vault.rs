//! What shows that a database and a keyring belong together, and how often anything that is sealed was changed.

use std::sync::atomic::Ordering;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, types::Value};
use uuid::Uuid;

use super::{
    Store, Unavailable,
    database::{Database, Misfit},
    failure::Failure,
    pins::bytes32,
    sessions,
};
use crate::{
    id,
    refusal::Code,
    vault::{Binding, Kid, Mac, Purpose, Vault},
};

/// What the check says, sealed.
const SAID: &[u8] = b"tollgate";

impl Store {
    /// How often anything that is sealed was changed: a lower number than one that was seen before is that of an older
    /// database.
    ///
    /// # Errors
    ///
    /// The database does not work, or the number is not as it was written.
    pub async fn changes(&self) -> Result<u64, Unavailable> {
        self.ask("vault_changes", |database| {
            changes(&database.connection, &database.mac)
        })
        .await
    }

    /// Counts changes on from beyond `seen`, which is more than an older database has; gives the number. Everybody is signed
    /// out: who had signed out since is signed in again in an older one.
    ///
    /// # Errors
    ///
    /// As [`Store::changes`].
    pub async fn count_beyond(&self, seen: u64) -> Result<u64, Unavailable> {
        self.ask("vault_accept", move |database| {
            let immediate = TransactionBehavior::Immediate;
            let transaction = database.connection.transaction_with_behavior(immediate)?;
            let number = changes(&transaction, &database.mac)?
                .max(seen)
                .saturating_add(1);
            write_changes(&transaction, &database.mac, number)?;
            sessions::forget(&transaction)?;
            transaction.commit()?;
            Ok(number)
        })
        .await
    }

    /// How many rows are sealed under each key.
    ///
    /// # Errors
    ///
    /// The database does not work.
    pub async fn sealed_rows(&self) -> Result<Vec<(Kid, u64)>, Unavailable> {
        self.ask("vault_rows", |database| {
            Ok(counts(&database.connection, database.now())?)
        })
        .await
    }

    /// Seals the row that shows which keyring the database is of under the primary key.
    ///
    /// # Errors
    ///
    /// The database does not work, or is of another keyring by now.
    pub async fn seal_check(&self) -> Result<(), Unavailable> {
        self.ask("vault_check", |database| {
            database.seal_check().map_err(|misfit| match misfit {
                Misfit::Keyring => Failure::Forged,
                Misfit::Other(failure) => failure,
            })
        })
        .await
    }

    /// The same when the database was opened.
    pub fn found(&self) -> u64 {
        self.found
    }

    /// Refuses to read and write connections from now on, or does so no more.
    pub fn refuse_older(&self, older: bool) {
        self.older.store(older, Ordering::Relaxed);
    }

    /// Refuses where the database is older than one that was in use here.
    pub(super) fn current(&self) -> Result<(), Failure> {
        if self.older.load(Ordering::Relaxed) {
            return Err(Unavailable::Older.into());
        }
        Ok(())
    }

    async fn ask<T: Send + 'static>(
        &self,
        operation: &'static str,
        job: impl FnOnce(&mut Database) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Unavailable> {
        let failed = |failure| match failure {
            Failure::Forged => Unavailable::Forged,
            Failure::Unavailable(why) => why,
        };
        let code = |_: &Unavailable| Code::StoreUnavailable;
        self.worker.ask(operation, job, failed, code).await
    }
}

/// A version: the check, and the number of changes. The number is marked, so that it cannot be set to what is expected.
pub(super) fn tables(transaction: &Transaction<'_>, mac: &Mac) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "CREATE TABLE vault_check (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            record BLOB NOT NULL,
            kid BLOB NOT NULL,
            sealed BLOB NOT NULL
        ) STRICT;
        CREATE TABLE vault_changes (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            number INTEGER NOT NULL,
            mac BLOB NOT NULL
        ) STRICT;
        CREATE INDEX grants_of_keys ON grants (kid);
        CREATE INDEX sealed_of_keys ON sealed (kid, expires_at);",
    )?;
    write_changes(transaction, mac, 0)
}

/// What the check says of a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Nobody sealed anything yet.
    Absent,
    /// It is this one's.
    Ours,
    /// It is this one's, under a key that another one follows.
    Older,
    /// It is another one's.
    Theirs,
}

/// Looks whether the database was sealed by `vault`; changes nothing.
pub(super) fn look(connection: &Connection, vault: &Vault) -> rusqlite::Result<Check> {
    let table = "SELECT count(*) FROM sqlite_schema WHERE name = 'vault_check'";
    if connection.query_row(table, [], |row| row.get::<_, u32>(0))? == 0 {
        return Ok(Check::Absent);
    }
    let row = "SELECT record, kid, sealed FROM vault_check WHERE id = 1";
    let row = connection.query_row(row, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let (record, kid, sealed): (Value, Value, Value) = match row.optional()? {
        Some(row) => row,
        None => return Ok(Check::Absent),
    };
    let (Value::Blob(record), Value::Blob(kid), Value::Blob(sealed)) = (record, kid, sealed) else {
        return Ok(Check::Theirs);
    };
    let Ok(record) = Uuid::from_slice(&record) else {
        return Ok(Check::Theirs);
    };
    Ok(match vault.open(&binding(record), &sealed) {
        Ok(said) if said.expose() != SAID => Check::Theirs,
        Ok(_) if kid == vault.primary().0 => Check::Ours,
        Ok(_) => Check::Older,
        Err(_) => Check::Theirs,
    })
}

/// Seals the check under the primary key, in the place of what is there.
pub(super) fn seal(transaction: &Transaction<'_>, vault: &Vault) -> rusqlite::Result<()> {
    let record = Uuid::from_bytes(id::random());
    let sealed = vault.seal(&binding(record), SAID);
    // Read from the record: the primary key may be another by now.
    let kid = Kid::of(&sealed).expect("what the vault sealed is a record");
    transaction.execute(
        "INSERT OR REPLACE INTO vault_check (id, record, kid, sealed) VALUES (1, ?1, ?2, ?3)",
        (record.as_bytes(), kid.0, sealed),
    )?;
    Ok(())
}

fn binding(record: Uuid) -> Binding<'static> {
    Binding::of_row(Purpose::Check, record, 1)
}

/// How often anything that is sealed was changed.
pub(super) fn changes(connection: &Connection, mac: &Mac) -> Result<u64, Failure> {
    let (number, mark) = read_changes(connection)?.ok_or(Failure::Forged)?;
    if !mac.verify(&parts(&number.to_be_bytes()), &bytes32(&mark)?) {
        return Err(Failure::Forged);
    }
    Ok(number)
}

/// Counts one change; every transaction that changes what is sealed does so.
pub(super) fn changed(transaction: &Transaction<'_>, mac: &Mac) -> Result<(), Failure> {
    let number = changes(transaction, mac)?;
    Ok(write_changes(transaction, mac, number + 1)?)
}

/// How many rows are sealed under each key, the check among them. Flows that have ended are none.
fn counts(connection: &Connection, now: i64) -> rusqlite::Result<Vec<(Kid, u64)>> {
    let mut statement = connection.prepare(
        "SELECT kid, count(*) FROM (
            SELECT kid FROM vault_check
            UNION ALL SELECT kid FROM grants
            UNION ALL SELECT kid FROM sealed WHERE expires_at IS NULL OR expires_at > ?1
        ) GROUP BY kid ORDER BY kid",
    )?;
    let rows = statement.query_map([now], |row| {
        Ok((Kid(row.get(0)?), row.get::<_, i64>(1)?.cast_unsigned()))
    })?;
    rows.collect()
}

/// Takes every sealed row away, and begins with `vault`; gives how many there were.
pub(super) fn reset(
    transaction: &Transaction<'_>,
    mac: &Mac,
    vault: &Vault,
) -> rusqlite::Result<u64> {
    let rows = ["DELETE FROM grants", "DELETE FROM sealed"]
        .into_iter()
        .try_fold(0, |rows, delete| {
            Ok::<_, rusqlite::Error>(rows + transaction.execute(delete, [])? as u64)
        })?;
    seal(transaction, vault)?;
    // The number goes on even where another keyring marked it: it must not be one that was seen before.
    let number = read_changes(transaction)?.map_or(0, |(number, _)| number);
    write_changes(transaction, mac, number.saturating_add(1))?;
    Ok(rows)
}

fn read_changes(connection: &Connection) -> rusqlite::Result<Option<(u64, Vec<u8>)>> {
    let row = "SELECT number, mac FROM vault_changes WHERE id = 1";
    let read = connection.query_row(row, [], |row| {
        Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))
    });
    read.optional()
}

fn write_changes(transaction: &Transaction<'_>, mac: &Mac, number: u64) -> rusqlite::Result<()> {
    let mark = mac.sign(&parts(&number.to_be_bytes()));
    transaction.execute(
        "INSERT OR REPLACE INTO vault_changes (id, number, mac) VALUES (1, ?1, ?2)",
        (number.cast_signed(), mark),
    )?;
    Ok(())
}

fn parts(number: &[u8; 8]) -> [&[u8]; 2] {
    [b"vault changes 1", number]
}
