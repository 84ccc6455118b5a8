//! Changes of a keyring, each of which puts another file in its place. Processes that run look at it again by themselves.

use std::path::Path;

use zeroize::Zeroizing;

use super::{
    super::{
        Error, Kek, KeyState, Kid,
        keys::{DataKey, Keys},
    },
    Keyring, file,
    form::{self, Form, KEKS, Parsed},
    parsed,
};
use crate::id;

/// What `init` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Init {
    /// There was none; now there is.
    Made,
    /// It had form 1, and has form 2 now, with the same keys.
    Upgraded,
    /// It was plain, and is sealed now.
    Sealed,
    /// It was as it should be.
    Unchanged,
}

impl Keyring {
    /// Makes a keyring where there is none, brings an older form up to date, and seals a plain one where there is a key
    /// for that. No key in it changes.
    ///
    /// # Errors
    ///
    /// A file that is there and cannot be used stays as it is.
    pub fn init(path: &Path, kek: Option<&Kek>) -> Result<Init, Error> {
        if super::make_missing(path, kek)? {
            return Ok(Init::Made);
        }
        change(path, kek, |parsed| {
            Ok(match (parsed.form, kek) {
                (Form::Sealed, _) | (Form::Second, None) => Init::Unchanged,
                (Form::First, _) => Init::Upgraded,
                (Form::Second, Some(_)) => Init::Sealed,
            })
        })
    }

    /// Makes a new data key primary; the one before opens what it sealed.
    ///
    /// # Errors
    ///
    /// As [`Keyring::init`]; there are sixteen keys.
    pub fn rotate(path: &Path, kek: Option<&Kek>) -> Result<Kid, Error> {
        change(path, kek, |parsed| parsed.keys.rotate().ok_or(Error::Full))
    }

    /// Disables a key that is not primary, or takes that back.
    ///
    /// # Errors
    ///
    /// As [`Keyring::init`]; there is no such key, or it is the primary one.
    pub fn disable(path: &Path, kek: Option<&Kek>, kid: Kid, disabled: bool) -> Result<(), Error> {
        let state = if disabled {
            KeyState::Disabled
        } else {
            KeyState::DecryptOnly
        };
        change(path, kek, |parsed| {
            let key = key(&mut parsed.keys, kid)?;
            if key.state == KeyState::Primary {
                let why = "it is the primary key; run `tollgate keys rotate` first";
                return Err(Error::Key { kid, why });
            }
            key.state = state;
            Ok(())
        })
    }

    /// Destroys a disabled key: nothing that it sealed opens ever again, in a backup neither unless that has a keyring too.
    ///
    /// # Errors
    ///
    /// As [`Keyring::init`]; there is no such key, or it is not disabled.
    pub fn destroy(path: &Path, kek: Option<&Kek>, kid: Kid) -> Result<(), Error> {
        change(path, kek, |parsed| {
            if key(&mut parsed.keys, kid)?.state != KeyState::Disabled {
                let why = "it is not disabled; run `tollgate keys rotate --disable KID` first";
                return Err(Error::Key { kid, why });
            }
            parsed.keys.data.retain(|key| key.kid != kid);
            Ok(())
        })
    }

    /// Seals the keyring for `next` too, beside `kek`: processes start with either, and `next` counts as the newer one, also
    /// where it was there before.
    ///
    /// # Errors
    ///
    /// As [`Keyring::init`]; it is sealed for two keys already.
    pub fn share(path: &Path, kek: &Kek, next: &Kek) -> Result<(), Error> {
        change(path, Some(kek), |parsed| {
            let Some(file_key) = &parsed.file_key else {
                return Err(Error::Form { path: path.into() });
            };
            parsed.keks.retain(|(id, _)| *id != next.id());
            if parsed.keks.len() == KEKS {
                return Err(Error::Keks { path: path.into() });
            }
            let next = form::wrap(file_key, next);
            parsed.keks.push(next);
            Ok(())
        })
    }

    /// Seals the keyring for `kek` only, under a file key of its own: no other key opens it any more.
    ///
    /// # Errors
    ///
    /// As [`Keyring::init`]; another key is the newer one.
    pub fn keep_only(path: &Path, kek: &Kek) -> Result<(), Error> {
        change(path, Some(kek), |parsed| {
            if let Some((newest, _)) = parsed.keks.last()
                && *newest != kek.id()
            {
                return Err(Error::Older {
                    path: path.into(),
                    found: kek.id(),
                    newest: *newest,
                });
            }
            seal_anew(parsed, kek);
            Ok(())
        })
    }
}

fn key(keys: &mut Keys, kid: Kid) -> Result<&mut DataKey, Error> {
    let why = "the keyring has no such key; `tollgate keys status` lists them";
    let key = keys.data.iter_mut().find(|key| key.kid == kid);
    key.ok_or(Error::Key { kid, why })
}

/// Changes the file; it comes out in form 2, and sealed where there is a key for that. One that would be no other stays.
fn change<T>(
    path: &Path,
    kek: Option<&Kek>,
    change: impl FnOnce(&mut Parsed) -> Result<T, Error>,
) -> Result<T, Error> {
    file::change(path, |text| {
        let mut parsed = parsed(path, text, kek)?;
        if let (Form::First | Form::Second, Some(kek)) = (parsed.form, kek) {
            seal_anew(&mut parsed, kek);
        }
        let outcome = change(&mut parsed)?;
        let text = form::write(&parsed);
        Ok((Some(text), outcome))
    })
}

fn seal_anew(parsed: &mut Parsed, kek: &Kek) {
    let file_key = Zeroizing::new(id::random());
    parsed.keks = vec![form::wrap(&file_key, kek)];
    parsed.file_key = Some(file_key);
}
