//! The items that are pinned of one server: read whole and checked, or brought to another state by what differs.

use std::{collections::BTreeMap, sync::Arc};

use rusqlite::{Row, Transaction};
use sha2::{Digest, Sha256};

use super::{
    failure::Failure,
    pins::{Head, bytes32},
};
use crate::{
    catalog::{By, Item, ItemKind, ServerKey},
    vault::Mac,
};

/// Reads the items of `head`, in the order of their keys.
pub(super) fn read(
    transaction: &Transaction<'_>,
    mac: &Mac,
    server: &ServerKey,
    head: &Head,
) -> Result<Vec<Item>, Failure> {
    let mut statement = transaction.prepare(
        "SELECT kind, name, digest, version, made_by, mac, definition FROM pin_items
        WHERE pin = ?1 LIMIT ?2",
    )?;
    // One more than there were, to see whether there are more.
    let mut rows = statement.query((head.id, head.items + 1))?;
    let mut items = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let (item, mark) = item(row)?;
        bytes += size(&item);
        let version = item.version.to_be_bytes();
        let whole = Sha256::digest(item.definition.as_bytes())[..] == item.digest;
        if bytes > head.bytes || !whole || !mac.verify(&parts(&item, server, &version), &mark) {
            return Err(Failure::Forged);
        }
        items.push((item, mark));
    }
    items.sort_by(|(one, _), (other, _)| one.key().cmp(&other.key()));
    let marks = items.iter().map(|(_, mark)| mark);
    if !mac.verify(&list(marks), &head.list) {
        return Err(Failure::Forged);
    }
    Ok(items.into_iter().map(|(item, _)| item).collect())
}

/// Makes `items` those of `head`, which says how many rows there are before and after.
pub(super) fn write(
    transaction: &Transaction<'_>,
    mac: &Mac,
    server: &ServerKey,
    head: &mut Head,
    items: &[Item],
) -> Result<(), Failure> {
    let mut items: Vec<&Item> = items.iter().collect();
    items.sort_by_key(|item| item.key());
    items.dedup_by_key(|item| item.key());
    let marks: Vec<_> = items
        .iter()
        .map(|item| mac.sign(&parts(item, server, &item.version.to_be_bytes())))
        .collect();
    let mut old = stored(transaction, head)?;
    let mut put = transaction.prepare(
        "INSERT OR REPLACE INTO pin_items (pin, kind, name, digest, version, made_by, mac, definition)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    for (item, mark) in items.iter().zip(&marks) {
        let key = Key {
            kind: item.kind,
            name: item.name.clone(),
            digest: item.digest,
        };
        if old.remove(&key) != Some(*mark) {
            put.execute((
                head.id,
                item.kind.as_str(),
                &item.name,
                item.digest,
                item.version.cast_signed(),
                item.by.as_str(),
                mark,
                &item.definition,
            ))?;
        }
    }
    let mut remove = transaction.prepare(
        "DELETE FROM pin_items WHERE pin = ?1 AND kind = ?2 AND name = ?3 AND digest = ?4",
    )?;
    for key in old.into_keys() {
        remove.execute((head.id, key.kind.as_str(), key.name, key.digest))?;
    }
    head.items = items.len() as i64;
    head.bytes = items.iter().map(|item| size(item)).sum();
    head.list = mac.sign(&list(marks.iter()));
    Ok(())
}

/// By what a row is told apart from others of its server.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: ItemKind,
    name: Arc<str>,
    digest: [u8; 32],
}

/// The marks of the rows that are there. Whether they hold shows when they are next read.
fn stored(transaction: &Transaction<'_>, head: &Head) -> Result<BTreeMap<Key, [u8; 32]>, Failure> {
    let mut statement = transaction
        .prepare("SELECT kind, name, digest, mac FROM pin_items WHERE pin = ?1 LIMIT ?2")?;
    let mut rows = statement.query((head.id, head.items + 1))?;
    let mut stored = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let key = Key {
            kind: kind(row, 0)?,
            name: row.get(1)?,
            digest: blob(row, 2)?,
        };
        stored.insert(key, blob(row, 3)?);
    }
    if stored.len() as i64 != head.items {
        return Err(Failure::Forged);
    }
    Ok(stored)
}

fn item(row: &Row<'_>) -> Result<(Item, [u8; 32]), Failure> {
    let by: String = row.get(4)?;
    let item = Item {
        kind: kind(row, 0)?,
        name: row.get(1)?,
        digest: blob(row, 2)?,
        version: row.get::<_, i64>(3)?.cast_unsigned(),
        by: By::parse(&by).ok_or(Failure::Forged)?,
        definition: row.get(6)?,
    };
    Ok((item, blob(row, 5)?))
}

fn kind(row: &Row<'_>, column: usize) -> Result<ItemKind, Failure> {
    let word: String = row.get(column)?;
    ItemKind::parse(&word).ok_or(Failure::Forged)
}

fn blob(row: &Row<'_>, column: usize) -> Result<[u8; 32], Failure> {
    bytes32(&row.get::<_, Vec<u8>>(column)?)
}

/// What the mark of an item of this version is over; its definition counts by its digest.
fn parts<'a>(item: &'a Item, server: &'a ServerKey, version: &'a [u8; 8]) -> [&'a [u8]; 8] {
    [
        b"item 1",
        server.name.as_bytes(),
        server.endpoint.as_bytes(),
        item.kind.as_str().as_bytes(),
        item.name.as_bytes(),
        &item.digest,
        version,
        item.by.as_str().as_bytes(),
    ]
}

/// What the mark of a whole list is over.
fn list<'a>(marks: impl Iterator<Item = &'a [u8; 32]>) -> Vec<&'a [u8]> {
    let mut parts: Vec<&[u8]> = vec![b"items 1"];
    parts.extend(marks.map(|mark| &mark[..]));
    parts
}

/// Bytes that an item takes, of those that its server decides.
fn size(item: &Item) -> i64 {
    (item.name.len() + item.definition.len()) as i64
}
