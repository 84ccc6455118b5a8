//! The words that files may use for names.

use std::sync::Arc;

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
