//! The key-encryption key: what seals the keyring, and is kept elsewhere.

use std::{
    env,
    ffi::OsString,
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use nix::fcntl::OFlag;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::{Error, Sealer, keyring::form};
use crate::{id, private, secret::Source};

/// Where systemd puts the credentials of a unit.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";
/// The bytes of a key.
const KEY: usize = 32;
/// The most that is read: hexadecimal digits, a line end, and one more to see whether there is more.
const LONGEST: u64 = 2 * KEY as u64 + 2;

/// The name of a key-encryption key: the first 8 bytes of a digest of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KekId(pub(super) [u8; 8]);

impl fmt::Display for KekId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&id::hex(&self.0))
    }
}

/// A key that seals keyrings; cheap to clone, wiped with its last clone. It shows nothing of itself.
#[derive(Clone)]
pub struct Kek {
    key: Arc<Zeroizing<[u8; KEY]>>,
    id: KekId,
}

impl Kek {
    /// Reads it from where it is kept: 32 bytes, or their 64 hexadecimal digits. A relative path of a file stands beside
    /// the files of `folder`.
    ///
    /// # Errors
    ///
    /// What is not there, others could read, or is no key.
    pub fn read(source: &Source, folder: &Path) -> Result<Self, Error> {
        let unusable = |why| Error::Kek {
            source_text: source.to_string(),
            why,
        };
        let found = match source {
            Source::Env(name) => {
                tracing::warn!(
                    name,
                    "the key of the keyring is in the environment, where every program that this one starts and every \
                     process of this user can read it; use a systemd credential or a file"
                );
                from_variable(env::var_os(name))
            }
            Source::File(path) => file(&folder.join(path), true),
            Source::Credential(name) => from_credentials(env::var_os(CREDENTIALS), name),
        };
        let bytes = found.map_err(unusable)?;
        let key = key(&bytes).map_err(|why| unusable(why.to_owned()))?;
        Ok(Self::new(key))
    }

    pub(super) fn new(key: Zeroizing<[u8; KEY]>) -> Self {
        let digest = Sha256::new()
            .chain_update(b"tollgate key-encryption key 1 ")
            .chain_update(key.as_slice())
            .finalize();
        let id = digest.first_chunk().expect("a digest has 32 bytes");
        Self {
            id: KekId(*id),
            key: Arc::new(key),
        }
    }

    /// Its name.
    pub fn id(&self) -> KekId {
        self.id
    }

    /// What seals the key of a keyring's file under this one.
    pub(super) fn sealer(&self) -> Sealer {
        Sealer::derive(1, &self.key, "keyring key")
    }
}

fn from_variable(value: Option<OsString>) -> Result<Zeroizing<Vec<u8>>, String> {
    match value {
        Some(value) if !value.is_empty() => Ok(Zeroizing::new(value.into_encoded_bytes())),
        _ => Err("the variable is not set; set it, or name another source".to_owned()),
    }
}

/// The mode of a credential is not looked at: systemd lets one user in by an access list, which shows as a mode for the group.
fn from_credentials(folder: Option<OsString>, name: &str) -> Result<Zeroizing<Vec<u8>>, String> {
    let folder = folder.ok_or(
        "systemd passed no credentials; add LoadCredentialEncrypted= or LoadCredential= to the unit",
    )?;
    file(&PathBuf::from(folder).join(name), false)
}

fn file(path: &Path, own: bool) -> Result<Zeroizing<Vec<u8>>, String> {
    let read = || -> io::Result<Result<Zeroizing<Vec<u8>>, String>> {
        let flags = OFlag::O_NONBLOCK.bits();
        let file: File = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Ok(Err(
                "not a regular file; name the file of the key".to_owned()
            ));
        }
        if own && let Err(loose) = private::check(path, &found) {
            return Ok(Err(loose.to_string()));
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(LONGEST as usize));
        file.take(LONGEST).read_to_end(&mut bytes)?;
        Ok(Ok(bytes))
    };
    read().unwrap_or_else(|error| {
        Err(format!(
            "`{}` cannot be read: {error}; put the key there, or name another source",
            path.display()
        ))
    })
}

/// The key in what was read.
fn key(bytes: &[u8]) -> Result<Zeroizing<[u8; KEY]>, &'static str> {
    let mut key = Zeroizing::new([0; KEY]);
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.len() == KEY {
        key.copy_from_slice(bytes);
    } else if !form::unhex(line, &mut *key) {
        return Err(
            "expected 32 random bytes, or their 64 lower-case hexadecimal digits; \
             make one with `head -c 32 /dev/urandom > FILE`",
        );
    }
    if key.iter().all(|byte| *byte == key[0]) {
        return Err(
            "all bytes are the same, expected random ones; make one with `head -c 32 /dev/urandom > FILE`",
        );
    }
    Ok(key)
}

#[cfg(test)]
mod tests;
