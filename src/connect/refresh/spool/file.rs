//! The files of the spool: one for each connection, replaced as a whole, readable by nobody else.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::{
    connect::{GrantKey, GrantRow, GrantState},
    private,
    subject::Owner,
    vault::{Binding, Kid, Purpose, Vault},
};

const ENDING: &str = "sealed";

/// The longest file that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// A row and the digest of the token that it was got with. What is a token in it is sealed once more.
#[derive(Serialize, Deserialize)]
struct Written {
    tenant: String,
    user: String,
    server: String,
    grant: [u8; 16],
    version: u64,
    issuer: String,
    client: String,
    resource: Option<String>,
    expires_at: Option<i64>,
    sealed: String,
    created_at: i64,
    consumed: [u8; 32],
}

/// The content of a file.
pub(super) fn sealed(vault: &Vault, row: &GrantRow, consumed: &[u8; 32]) -> Vec<u8> {
    let written = Written {
        tenant: row.key.owner.tenant.to_string(),
        user: row.key.owner.user.to_string(),
        server: row.key.server.to_string(),
        grant: row.grant,
        version: row.version,
        issuer: row.issuer.to_string(),
        client: row.client.to_string(),
        resource: row.resource.as_deref().map(str::to_owned),
        expires_at: row.expires_at,
        sealed: STANDARD.encode(&row.sealed),
        created_at: row.created_at,
        consumed: *consumed,
    };
    let plain = serde_json::to_vec(&written).expect("plain data is written to memory");
    vault.seal(&binding(row.record), &Zeroizing::new(plain))
}

/// Writes a file; it is on the disk on return, or the one before stays.
pub(super) fn write(folder: &Path, record: Uuid, sealed: &[u8]) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let path = place(folder, record);
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(sealed)?;
    file.sync_all()?;
    fs::rename(&new, &path)?;
    File::open(folder)?.sync_all()
}

/// Takes a file away.
pub(super) fn remove(folder: &Path, record: Uuid) -> io::Result<()> {
    match fs::remove_file(place(folder, record)) {
        Ok(()) => File::open(folder)?.sync_all(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// What `max` files at most hold. One that somebody else wrote, or that does not open, is left and told of.
pub(super) fn read_all(
    folder: &Path,
    vault: &Vault,
    max: usize,
) -> io::Result<Vec<(GrantRow, [u8; 32])>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries.take(2 * max) {
        let path = entry?.path();
        let Some(record) = record(&path) else {
            continue;
        };
        match read(&path, record, vault) {
            Some(read) if found.len() < max => found.push(read),
            Some(_) => break,
            None => {
                tracing::error!(path = %path.display(), "a file of the spool cannot be used; it stays");
            }
        }
    }
    Ok(found)
}

/// How many of `max` files need each key: a file's own seal, and that of the tokens in it.
pub(super) fn keys(folder: &Path, vault: &Vault, max: usize) -> io::Result<BTreeMap<Kid, u64>> {
    let mut counts = BTreeMap::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(counts),
        Err(error) => return Err(error),
    };
    for entry in entries.take(2 * max) {
        let path = entry?.path();
        let Some((record, bytes)) = record(&path).zip(bytes(&path)) else {
            continue;
        };
        let within = opened(&bytes, record, vault).map(|(row, _)| row.kid);
        let kids: BTreeSet<Kid> = Kid::of(&bytes).into_iter().chain(within).collect();
        for kid in kids {
            *counts.entry(kid).or_default() += 1;
        }
    }
    Ok(counts)
}

fn read(path: &Path, record: Uuid, vault: &Vault) -> Option<(GrantRow, [u8; 32])> {
    opened(&bytes(path)?, record, vault)
}

/// The content of a file, unless somebody else wrote it.
fn bytes(path: &Path) -> Option<Vec<u8>> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || private::check(path, &found).is_err() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn opened(bytes: &[u8], record: Uuid, vault: &Vault) -> Option<(GrantRow, [u8; 32])> {
    let opened = vault.open(&binding(record), bytes).ok()?;
    let written: Written = serde_json::from_slice(opened.expose()).ok()?;
    let sealed = STANDARD.decode(written.sealed).ok()?;
    let row = GrantRow {
        record,
        key: GrantKey {
            owner: Owner {
                tenant: written.tenant.into(),
                user: written.user.into(),
            },
            server: written.server.into(),
        },
        grant: written.grant,
        version: written.version,
        issuer: written.issuer.into(),
        client: written.client.into(),
        resource: written.resource.map(Arc::from),
        state: GrantState::Active,
        expires_at: written.expires_at,
        next_try: None,
        lease: None,
        kid: Kid::of(&sealed)?,
        sealed,
        created_at: written.created_at,
    };
    Some((row, written.consumed))
}

/// The record in a file's name, where it is a file of the spool.
fn record(path: &Path) -> Option<Uuid> {
    if path.extension()? != ENDING {
        return None;
    }
    Uuid::try_parse(path.file_stem()?.to_str()?).ok()
}

fn place(folder: &Path, record: Uuid) -> PathBuf {
    folder.join(format!("{record}.{ENDING}"))
}

/// A file opens only under the name of its row; the rest is inside.
fn binding(record: Uuid) -> Binding<'static> {
    Binding::of_row(Purpose::Spool, record, 0)
}

#[cfg(test)]
mod tests;
