//! What is pinned of each server, as rows that are believed only while their marks hold.
//!
//! A server's row marks the list of its items' marks, so that an item that is missing, added or of an older state shows.

use std::{future::Future, pin::Pin};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::{Store, database::Database, failure::Failure, heads::Heads, items};
use crate::{
    catalog::{Ledger, LedgerError, Pinned, ServerKey},
    vault::Mac,
};

impl Ledger for Store {
    fn read<'a>(
        &'a self,
        server: &'a ServerKey,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Pinned>, LedgerError>> + Send + 'a>> {
        let asked = server.clone();
        let failed = |failure| failed(server, failure);
        Box::pin(self.worker.ask(
            "read",
            move |database| read(&mut database.connection, &database.mac, &asked),
            failed,
            LedgerError::code,
        ))
    }

    fn replace<'a>(
        &'a self,
        server: &'a ServerKey,
        expected: Option<u64>,
        pinned: &'a Pinned,
    ) -> Pin<Box<dyn Future<Output = Result<bool, LedgerError>> + Send + 'a>> {
        let (asked, pinned) = (server.clone(), pinned.clone());
        let job = move |database: &mut Database| {
            let Database {
                connection, mac, ..
            } = database;
            replace(connection, mac, &asked, expected, &pinned)
        };
        let failed = |failure| failed(server, failure);
        Box::pin(self.worker.ask("replace", job, failed, LedgerError::code))
    }
}

fn failed(server: &ServerKey, failure: Failure) -> LedgerError {
    let server = server.name.clone();
    match failure {
        Failure::Forged => LedgerError::Forged { server },
        Failure::Unavailable(why) => LedgerError::Unavailable {
            server,
            source: Box::new(why),
        },
    }
}

/// The row of a server, without its name and endpoint.
#[derive(Default)]
pub(super) struct Head {
    pub(super) id: i64,
    version: u64,
    /// 0 or 1.
    reviewed: i64,
    /// 32 bytes each.
    views: Vec<u8>,
    /// How many.
    pub(super) items: i64,
    /// How many bytes their names and definitions take.
    pub(super) bytes: i64,
    /// The mark over the marks of the items.
    pub(super) list: [u8; 32],
}

/// What is pinned of `server`, as the last commit left it.
fn read(
    connection: &mut Connection,
    mac: &Mac,
    server: &ServerKey,
) -> Result<Option<Pinned>, Failure> {
    let transaction = connection.transaction()?;
    let heads = Heads::read(&transaction, mac)?;
    let Some(head) = Head::read(&transaction, mac, server, &heads)? else {
        return Ok(None);
    };
    let items = items::read(&transaction, mac, server, &head)?;
    let (views, []) = head.views.as_chunks::<32>() else {
        return Err(Failure::Forged);
    };
    Ok(Some(Pinned {
        version: head.version,
        reviewed: head.reviewed == 1,
        views: views.to_vec(),
        items,
    }))
}

/// Puts `pinned` in the place of version `expected`; false where another is there.
fn replace(
    connection: &mut Connection,
    mac: &Mac,
    server: &ServerKey,
    expected: Option<u64>,
    pinned: &Pinned,
) -> Result<bool, Failure> {
    // No other process can write between the look and the change.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut heads = Heads::read(&transaction, mac)?;
    let found = Head::read(&transaction, mac, server, &heads)?;
    if found.as_ref().map(|head| head.version) != expected {
        return Ok(false);
    }
    let mut head = match found {
        Some(head) => head,
        None => Head::new(&transaction)?,
    };
    head.version = pinned.version;
    head.reviewed = i64::from(pinned.reviewed);
    head.views = pinned.views.concat();
    items::write(&transaction, mac, server, &mut head, &pinned.items)?;
    heads.put(server, head.write(&transaction, mac, server)?);
    heads.write(&transaction, mac)?;
    transaction.commit()?;
    Ok(true)
}

impl Head {
    /// A row that is not there yet.
    fn new(transaction: &Transaction<'_>) -> rusqlite::Result<Self> {
        let free = "SELECT coalesce(max(id), 0) + 1 FROM pins";
        let id = transaction.query_row(free, [], |row| row.get(0))?;
        // Items of a row that somebody took away would come back with its number.
        transaction.execute("DELETE FROM pin_items WHERE pin = ?1", [id])?;
        Ok(Self {
            id,
            ..Self::default()
        })
    }

    /// The row of `server`, if it is as it was written.
    fn read(
        transaction: &Transaction<'_>,
        mac: &Mac,
        server: &ServerKey,
        heads: &Heads,
    ) -> Result<Option<Self>, Failure> {
        let Some(mark) = heads.mark(server) else {
            return Ok(None);
        };
        let row = "SELECT id, version, reviewed, views, items, bytes, list FROM pins
            WHERE server = ?1 AND endpoint = ?2";
        let key = (&server.name, &server.endpoint);
        let row = transaction.query_row(row, key, |row| {
            let head = Self {
                id: row.get(0)?,
                version: row.get::<_, i64>(1)?.cast_unsigned(),
                reviewed: row.get(2)?,
                views: row.get(3)?,
                items: row.get(4)?,
                bytes: row.get(5)?,
                list: [0; 32],
            };
            Ok((head, row.get::<_, Vec<u8>>(6)?))
        });
        let (mut head, list) = row.optional()?.ok_or(Failure::Forged)?;
        head.list = bytes32(&list)?;
        if !mac.verify(&head.parts(server, &head.numbers()), mark) {
            return Err(Failure::Forged);
        }
        Ok(Some(head))
    }

    /// Writes the row and gives its mark.
    fn write(
        &self,
        transaction: &Transaction<'_>,
        mac: &Mac,
        server: &ServerKey,
    ) -> rusqlite::Result<[u8; 32]> {
        let mark = mac.sign(&self.parts(server, &self.numbers()));
        transaction.execute(
            "INSERT INTO pins (id, server, endpoint, version, reviewed, views, items, bytes, list, mac)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
            ON CONFLICT (id) DO UPDATE SET version = excluded.version, reviewed = excluded.reviewed,
                views = excluded.views, items = excluded.items, bytes = excluded.bytes,
                list = excluded.list, mac = excluded.mac",
            (
                self.id,
                &server.name,
                &server.endpoint,
                self.version.cast_signed(),
                self.reviewed,
                &self.views,
                self.items,
                self.bytes,
                self.list,
                mark,
            ),
        )?;
        Ok(mark)
    }

    /// Every number of the row, each of one length; the row's own number tells nothing.
    fn numbers(&self) -> [u8; 32] {
        let mut numbers = [0; 32];
        numbers[..8].copy_from_slice(&self.version.to_be_bytes());
        numbers[8..16].copy_from_slice(&self.items.to_be_bytes());
        numbers[16..24].copy_from_slice(&self.bytes.to_be_bytes());
        numbers[24..].copy_from_slice(&self.reviewed.to_be_bytes());
        numbers
    }

    fn parts<'a>(&'a self, server: &'a ServerKey, numbers: &'a [u8; 32]) -> [&'a [u8]; 6] {
        [
            b"server 1",
            server.name.as_bytes(),
            server.endpoint.as_bytes(),
            numbers,
            &self.views,
            &self.list,
        ]
    }
}

/// 32 bytes, as they were written.
pub(super) fn bytes32(bytes: &[u8]) -> Result<[u8; 32], Failure> {
    bytes.try_into().map_err(|_| Failure::Forged)
}
