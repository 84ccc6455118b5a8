//! A sealed row as the value it holds: read and opened, sealed and put in the place of what was read.
//!
//! Here is also what such a value is for a connection, what this process knows of one, and how it is changed.

pub(super) mod cache;
pub(super) mod change;
pub(super) mod grant;
pub(super) mod known;
pub(super) mod life;
pub(super) mod reseal;

use serde::{Serialize, de::DeserializeOwned};
use zeroize::Zeroizing;

use super::{GrantKey, Inner, Key, RecordsError, Row, tell};
use crate::id;

/// Most values are shorter: a buffer that grew would leave copies behind.
const ROOM: usize = 16 << 10;

/// A row that was found.
pub(super) struct Kept<T> {
    /// What it holds; `None` where it does not open, which was recorded.
    pub(super) value: Option<T>,
    /// Its version, for whoever replaces it.
    pub(super) version: u64,
}

/// What a flow's row has beside its value.
pub(super) struct Flow {
    pub(super) key: GrantKey,
    /// Unix seconds.
    pub(super) expires_at: i64,
}

/// The row at `key`.
pub(super) async fn read<T: DeserializeOwned>(
    inner: &Inner,
    key: &Key,
) -> Result<Option<Kept<T>>, RecordsError> {
    let row = inner.records.read(key).await?;
    Ok(row.map(|row| Kept {
        value: open(inner, key, &row),
        version: row.version,
    }))
}

/// What `row` holds. One that was changed, moved here or sealed under another key opens as nothing, and is recorded.
pub(super) fn open<T: DeserializeOwned>(inner: &Inner, key: &Key, row: &Row) -> Option<T> {
    let opened = inner.vault.open(&row.binding(key), &row.sealed);
    let value = opened
        .ok()
        .and_then(|opened| serde_json::from_slice(opened.expose()).ok());
    if value.is_none() && inner.patience.tell(row.record, row.version) {
        tell::tampered(inner, key, row);
    }
    value
}

/// Puts `value` in the place of version `expected`. False where another is there.
pub(super) async fn replace<T: Serialize>(
    inner: &Inner,
    key: &Key,
    expected: Option<u64>,
    value: &T,
    flow: Option<Flow>,
) -> Result<bool, RecordsError> {
    let mut row = Row {
        record: id::ordered(inner.clock.now()),
        version: expected.unwrap_or_else(first) + 1,
        flow: None,
        expires_at: flow.as_ref().map(|flow| flow.expires_at),
        kid: inner.vault.primary(),
        sealed: Vec::new(),
    };
    row.flow = flow.map(|flow| flow.key);
    row.sealed = inner.vault.seal(&row.binding(key), &written(value));
    row.kid = grant::kid(&row.sealed);
    inner.records.replace(key, expected, &row).await
}

/// Where the versions of a new row begin: at no place where those of one that was taken away did, so that whoever still has
/// read that one does not write it over this one.
fn first() -> u64 {
    u64::from_be_bytes(id::random()) >> 2
}

fn written<T: Serialize>(value: &T) -> Zeroizing<Vec<u8>> {
    let mut plain = Zeroizing::new(Vec::with_capacity(ROOM));
    serde_json::to_writer(&mut *plain, value).expect("plain data is written to memory");
    plain
}
