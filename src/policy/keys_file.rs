//! `keys.toml`: agent keys, known by their SHA-256.

use std::{collections::HashMap, sync::Arc};

use super::{
    File, Key,
    words::{moment, word, words},
};
use crate::{
    id,
    subject::{DEFAULT_TENANT, Scopes, Subject},
    table::{self, Fault, Item, Place, Table},
};

/// A `[[key]]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    /// SHA-256 of the key.
    pub digest: [u8; 32],
    /// What it is for.
    pub key: Key,
    /// Where the table begins.
    pub place: Place,
}

/// The keys of a `keys.toml`, in the order of the file.
///
/// # Errors
///
/// Every fault of the file.
pub fn keys(file: &File) -> Result<Vec<KeyEntry>, Vec<Fault>> {
    let mut faults = Vec::new();
    let keys = read(file, &mut faults);
    if faults.is_empty() {
        Ok(keys)
    } else {
        Err(faults)
    }
}

/// Reads the file; keys with faults are left out, since nothing takes effect anyway.
pub(super) fn read(file: &File, faults: &mut Vec<Fault>) -> Vec<KeyEntry> {
    let (keys, found) = table::read(&file.path, &file.text, |root| {
        let mut keys = Vec::new();
        let mut first: HashMap<[u8; 32], Place> = HashMap::new();
        for entry in root.tables("key") {
            let place = entry.place();
            let digest = entry
                .required_text("sha256")
                .and_then(|text| digest(&entry, &text));
            let key = key(&entry, digest);
            if let Some(digest) = digest {
                if let Some(first) = first.insert(digest, place.clone()) {
                    let message = format!("the key of {first} again; remove one of the two");
                    entry.fault(entry.place_of("sha256").fault(message));
                }
                keys.extend(key.map(|key| KeyEntry { digest, key, place }));
            }
        }
        keys
    });
    faults.extend(found);
    keys.unwrap_or_default()
}

fn key(entry: &Table<'_>, digest: Option<[u8; 32]>) -> Option<Key> {
    let agent = entry
        .required_text("agent")
        .and_then(|item| word(entry, item));
    let user = entry
        .required_text("user")
        .and_then(|item| word(entry, item));
    let tenant = match entry.text("tenant") {
        None => Some(Arc::from(DEFAULT_TENANT)),
        Some(item) => word(entry, item),
    };
    let scopes = scopes(entry);
    let may_act_for = words(entry, "may_act_for");
    let may_assert_groups = entry.flag("may_assert_groups").unwrap_or_default();
    check_acting(entry, scopes, &may_act_for, may_assert_groups);
    let groups = words(entry, "groups");
    let expires = moment(entry, "expires");
    let subject = Subject {
        tenant: tenant?,
        agent: agent?,
        user: user?,
        groups: groups.into(),
        scopes,
        conversation: None,
        turn: None,
        acting: None,
        evidence: format!("key:{}", id::hex(&digest?[..8])).into(),
    };
    Some(Key {
        subject: Arc::new(subject),
        expires,
        may_act_for,
        may_assert_groups,
    })
}

fn digest(entry: &Table<'_>, text: &Item<String>) -> Option<[u8; 32]> {
    let digest = parse_digest(&text.value);
    if digest.is_none() {
        let message = "expected 64 hexadecimal digits, the SHA-256 of a key; `tollgate agent-key new` writes them";
        entry.fault(text.fault(message));
    }
    digest
}

fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(digest)
}

fn scopes(entry: &Table<'_>) -> Scopes {
    let Some(written) = entry.texts("scopes") else {
        return Scopes::CALL;
    };
    let mut scopes = Scopes::default();
    for item in &written {
        match item.value.as_str() {
            "call" => scopes.call = true,
            "act-for" => scopes.act_for = true,
            "decide" | "vouch" => entry.fault(item.fault(format!(
                "the scope `{}` is not available in this version; remove it",
                item.value
            ))),
            other => entry.fault(item.fault(format!(
                "found `{other}`, expected `call` or `act-for`; correct the scope"
            ))),
        }
    }
    if written.is_empty() {
        let message =
            "a key without a scope opens nothing; name one, or remove the key `scopes` for `call`";
        entry.fault(entry.place_of("scopes").fault(message));
    }
    scopes
}

fn check_acting(entry: &Table<'_>, scopes: Scopes, users: &[Arc<str>], groups: bool) {
    if scopes.act_for && users.is_empty() {
        let message =
            "`act-for` needs users; add may_act_for = [\"NAME\"], or [\"*\"] for all of its tenant";
        entry.fault(entry.place_of("scopes").fault(message));
    }
    if !scopes.act_for && (!users.is_empty() || groups) {
        let key = if users.is_empty() {
            "may_assert_groups"
        } else {
            "may_act_for"
        };
        let message =
            "has no effect without the scope `act-for`; add it to scopes, or remove this key";
        entry.fault(entry.place_of(key).fault(message));
    }
}
