//! The keyring: one file, made once, read at every start, and changed only by `tollgate keys`.

mod change;
pub(super) mod file;
pub(super) mod form;

use std::{io::ErrorKind, path::Path};

use zeroize::Zeroizing;

pub use self::change::Init;
use self::form::{Form, Parsed, Unread};
use super::{
    Error, Kek, KekId, KeyState, Kid, Mac, Sealer, Vault,
    keys::{DataKey, Keys},
};
use crate::id;

/// The keys of this gateway as the file had them, from which every other is derived; wiped when dropped.
pub struct Keyring {
    parsed: Parsed,
    vault: Vault,
}

/// What may be shown of a keyring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyringView {
    /// Whether it has the form that this version writes.
    pub current: bool,
    /// Whether it can be read with a key-encryption key only, and which.
    pub sealed_for: Vec<KekId>,
    /// Its data keys, the oldest first.
    pub keys: Vec<(Kid, KeyState)>,
}

impl Keyring {
    /// As [`Keyring::open_with`], for a keyring that is not sealed.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_with(path, None)
    }

    /// Reads the keyring at `path`, which is absolute, and makes one where there is none, sealed for `kek` if there is
    /// one: of several processes that do so at once, all get the same.
    ///
    /// # Errors
    ///
    /// A file that is there and cannot be used stays as it is.
    pub fn open_with(path: &Path, kek: Option<&Kek>) -> Result<Self, Error> {
        make_missing(path, kek)?;
        let (text, _) = file::read(path)?;
        let parsed = parsed(path, &text, kek)?;
        let vault = Vault::new(path.to_owned(), kek.cloned(), parsed.keys.again());
        Ok(Self { parsed, vault })
    }

    /// Looks whether the keyring at `path` could be opened; makes and keeps nothing.
    ///
    /// # Errors
    ///
    /// As [`Keyring::open_with`], and where there is none.
    pub fn look(path: &Path, kek: Option<&Kek>) -> Result<(), Error> {
        read(path, kek).map(drop)
    }

    /// What seals for `purpose`, with a key of its own: nothing that is sealed for one purpose opens for another.
    pub fn sealer(&self, purpose: &'static str) -> Sealer {
        Sealer::derive(1, &self.parsed.keys.root, purpose)
    }

    /// What marks for `purpose`, with a key of its own, which no sealer has.
    pub fn mac(&self, purpose: &'static str) -> Mac {
        Mac::derive(&self.parsed.keys.root, purpose)
    }

    /// What seals records, and looks at the file again where that helps; all that one keyring gives do so together.
    pub fn vault(&self) -> Vault {
        self.vault.clone()
    }

    /// What may be shown of it.
    pub fn view(&self) -> KeyringView {
        let key = |key: &DataKey| (key.kid, key.state);
        KeyringView {
            current: self.parsed.form != Form::First,
            sealed_for: self.parsed.keks.iter().map(|(id, _)| *id).collect(),
            keys: self.parsed.keys.data.iter().map(key).collect(),
        }
    }
}

/// The keys in the file at `path` now, and which state of it was read.
pub(super) fn read(path: &Path, kek: Option<&Kek>) -> Result<(Keys, file::Stamp), Error> {
    let (text, stamp) = file::read(path)?;
    Ok((parsed(path, &text, kek)?.keys, stamp))
}

/// Makes a keyring where there is none; whether it did.
fn make_missing(path: &Path, kek: Option<&Kek>) -> Result<bool, Error> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        // What else keeps it from being read shows when it is.
        _ => return Ok(false),
    }
    let file_key = Zeroizing::new(id::random());
    let keks = kek.map(|kek| form::wrap(&file_key, kek));
    let new = Parsed {
        keys: Keys::random(),
        form: Form::Second,
        keks: keks.into_iter().collect(),
        file_key: Some(file_key),
    };
    file::make(path, &form::write(&new))?;
    Ok(true)
}

fn parsed(path: &Path, text: &[u8], kek: Option<&Kek>) -> Result<Parsed, Error> {
    let path = path.to_owned();
    form::parse(text, kek).map_err(|unread| match (unread, kek) {
        (Unread::OtherKek(sealed_for), Some(kek)) => Error::OtherKek {
            path,
            sealed_for,
            found: kek.id(),
        },
        (Unread::NoKek, _) => Error::NoKek { path },
        _ => Error::Form { path },
    })
}
