//! The words that files may use for names and times.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::table::{Item, Table};

/// What is wrong with a server's name, if anything is.
pub(super) fn name_fault(name: &str) -> Option<String> {
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name == "tollgate" {
        return Some("`tollgate` is the name of Tollgate's own tools; choose another".to_owned());
    }
    if name.is_empty() || name.len() > 32 || name.starts_with('-') || !name.bytes().all(legal) {
        return Some(format!(
            "`{name}` cannot be a server's name; use 1 to 32 of `a-z`, `0-9` and `-`, beginning with a letter or digit"
        ));
    }
    None
}

/// An agent, tenant, user or group: 1 to 128 visible characters, without spaces at the ends. Notes a fault otherwise.
pub(super) fn word(table: &Table<'_>, item: Item<String>) -> Option<Arc<str>> {
    let text = item.value.as_str();
    let fits = !text.is_empty() && text.chars().count() <= 128 && text.trim() == text;
    if fits && !text.chars().any(char::is_control) {
        return Some(text.into());
    }
    table.fault(item.fault(
        "expected 1 to 128 visible characters, without spaces at the ends; correct the name",
    ));
    None
}

/// A list of [`word`]s; empty where the key is not written.
pub(super) fn words(table: &Table<'_>, key: &'static str) -> Vec<Arc<str>> {
    let items = table.texts(key).unwrap_or_default();
    items
        .into_iter()
        .filter_map(|item| word(table, item))
        .collect()
}

/// A time with an offset, or a date, which is its first moment in UTC.
pub(super) fn moment(table: &Table<'_>, key: &'static str) -> Option<SystemTime> {
    let written = table.time(key)?;
    let text = if written.value.len() == "2027-01-31".len() {
        format!("{}T00:00:00Z", written.value)
    } else {
        written.value.clone()
    };
    let time = text.parse::<jiff::Timestamp>().ok();
    let seconds = time.and_then(|time| u64::try_from(time.as_second()).ok());
    if seconds.is_none() {
        let message =
            "expected a date, or a time with its offset like 2027-01-31T12:00:00Z; correct it";
        table.fault(written.fault(message));
    }
    seconds.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds))
}
