//! Links and sign-ins of browsers. Their marks are made and judged by `identity`, whose they are.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior};

use super::{Store, failure::Failure, pins::bytes32};
use crate::{
    identity::{Kept, LinkRow, SessionRow, Sessions, SessionsError},
    subject::Owner,
    vault::Mac,
};

/// Sign-ins of one user.
const MOST: i64 = 32;

/// What browsers sign in by.
pub(super) fn tables(transaction: &Transaction<'_>, _: &Mac) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "CREATE TABLE login_links (
            digest BLOB PRIMARY KEY,
            tenant TEXT NOT NULL,
            user TEXT NOT NULL,
            ends INTEGER NOT NULL,
            mac BLOB NOT NULL
        ) STRICT;
        CREATE TABLE sessions (
            digest BLOB PRIMARY KEY,
            tenant TEXT NOT NULL,
            user TEXT NOT NULL,
            made INTEGER NOT NULL,
            seen INTEGER NOT NULL,
            ends INTEGER NOT NULL,
            mac BLOB NOT NULL
        ) STRICT;
        CREATE INDEX sessions_of_user ON sessions (tenant, user, seen);",
    )
}

/// Signs everybody out.
pub(super) fn forget(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch("DELETE FROM login_links; DELETE FROM sessions;")
}

impl Sessions for Store {
    fn put_link<'a>(&'a self, row: &'a LinkRow, now: i64) -> Kept<'a, ()> {
        let row = row.clone();
        self.kept("link.put", move |connection| {
            let transaction = begin(connection)?;
            transaction.execute("DELETE FROM login_links WHERE ends <= ?1", [now])?;
            transaction.execute(
                "INSERT INTO login_links (digest, tenant, user, ends, mac) VALUES (?1, ?2, ?3, ?4, ?5)",
                (row.digest, &row.owner.tenant, &row.owner.user, row.ends, row.mac),
            )?;
            Ok(transaction.commit()?)
        })
    }

    fn link<'a>(&'a self, digest: &'a [u8; 32]) -> Kept<'a, Option<LinkRow>> {
        let digest = *digest;
        self.kept("link.read", move |connection| {
            let sql = "SELECT digest, tenant, user, ends, mac FROM login_links WHERE digest = ?1";
            let found = connection.query_row(sql, [digest], |row| Ok(link(row)));
            found.optional()?.transpose()
        })
    }

    fn take_link<'a>(&'a self, digest: &'a [u8; 32]) -> Kept<'a, Option<LinkRow>> {
        let digest = *digest;
        self.kept("link.take", move |connection| {
            let sql = "DELETE FROM login_links WHERE digest = ?1 RETURNING digest, tenant, user, ends, mac";
            let found = connection.query_row(sql, [digest], |row| Ok(link(row)));
            found.optional()?.transpose()
        })
    }

    fn put_session<'a>(&'a self, row: &'a SessionRow) -> Kept<'a, ()> {
        let row = row.clone();
        self.kept("session.put", move |connection| {
            let transaction = begin(connection)?;
            transaction.execute("DELETE FROM sessions WHERE ends <= ?1", [row.made])?;
            transaction.execute(
                "DELETE FROM sessions WHERE digest IN (
                    SELECT digest FROM sessions WHERE tenant = ?1 AND user = ?2
                    ORDER BY seen DESC LIMIT -1 OFFSET ?3)",
                (&row.owner.tenant, &row.owner.user, MOST - 1),
            )?;
            transaction.execute(
                "INSERT INTO sessions (digest, tenant, user, made, seen, ends, mac)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                (
                    row.digest,
                    &row.owner.tenant,
                    &row.owner.user,
                    row.made,
                    row.seen,
                    row.ends,
                    row.mac,
                ),
            )?;
            Ok(transaction.commit()?)
        })
    }

    fn session<'a>(&'a self, digest: &'a [u8; 32]) -> Kept<'a, Option<SessionRow>> {
        let digest = *digest;
        self.kept("session.read", move |connection| {
            let sql = format!("SELECT {SESSION} FROM sessions WHERE digest = ?1");
            let found = connection.query_row(&sql, [digest], |row| Ok(session(row)));
            found.optional()?.transpose()
        })
    }

    fn see_session<'a>(&'a self, row: &'a SessionRow) -> Kept<'a, bool> {
        let row = row.clone();
        self.kept("session.see", move |connection| {
            let sql = "UPDATE sessions SET seen = ?2, mac = ?3
                WHERE digest = ?1 AND tenant = ?4 AND user = ?5 AND made = ?6 AND ends = ?7";
            let changed = connection.execute(
                sql,
                (
                    row.digest,
                    row.seen,
                    row.mac,
                    &row.owner.tenant,
                    &row.owner.user,
                    row.made,
                    row.ends,
                ),
            )?;
            Ok(changed == 1)
        })
    }

    fn remove_session<'a>(&'a self, digest: &'a [u8; 32]) -> Kept<'a, bool> {
        let digest = *digest;
        self.kept("session.remove", move |connection| {
            let removed = connection.execute("DELETE FROM sessions WHERE digest = ?1", [digest])?;
            Ok(removed == 1)
        })
    }

    fn sessions<'a>(&'a self, owner: &'a Owner) -> Kept<'a, Vec<SessionRow>> {
        let owner = owner.clone();
        self.kept("session.list", move |connection| {
            let mut statement = connection.prepare(&format!(
                "SELECT {SESSION} FROM sessions WHERE tenant = ?1 AND user = ?2 LIMIT ?3"
            ))?;
            let rows =
                statement.query_map((&owner.tenant, &owner.user, MOST), |row| Ok(session(row)))?;
            rows.map(|row| row?).collect()
        })
    }
}

impl Store {
    fn kept<T: Send + 'static>(
        &self,
        operation: &'static str,
        job: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Kept<'_, T> {
        let job = move |database: &mut super::database::Database| job(&mut database.connection);
        Box::pin(self.worker.ask(operation, job, failed, SessionsError::code))
    }
}

fn failed(failure: Failure) -> SessionsError {
    match failure {
        Failure::Forged => SessionsError::Forged,
        Failure::Unavailable(why) => SessionsError::Unavailable(Box::new(why)),
    }
}

/// A transaction that no other process's write comes between.
fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// The columns of a sign-in.
const SESSION: &str = "digest, tenant, user, made, seen, ends, mac";

fn link(row: &Row<'_>) -> Result<LinkRow, Failure> {
    Ok(LinkRow {
        digest: bytes(row, 0)?,
        owner: owner(row)?,
        ends: row.get(3)?,
        mac: bytes(row, 4)?,
    })
}

fn session(row: &Row<'_>) -> Result<SessionRow, Failure> {
    Ok(SessionRow {
        digest: bytes(row, 0)?,
        owner: owner(row)?,
        made: row.get(3)?,
        seen: row.get(4)?,
        ends: row.get(5)?,
        mac: bytes(row, 6)?,
    })
}

fn owner(row: &Row<'_>) -> Result<Owner, Failure> {
    Ok(Owner {
        tenant: row.get::<_, String>(1)?.into(),
        user: row.get::<_, String>(2)?.into(),
    })
}

fn bytes(row: &Row<'_>, column: usize) -> Result<[u8; 32], Failure> {
    bytes32(&row.get::<_, Vec<u8>>(column)?)
}
