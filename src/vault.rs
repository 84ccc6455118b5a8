//! Owns: the keyring in the state folder, and everything that only this gateway may open again, or can have written.
//! Imports: layer 0.
//! Never: shows a key, or writes over a keyring that it cannot read.
//! Fails as: [`Error`] at the start; sealed bytes that are not its own as `None`.

mod credential;
mod keeper;
mod kek;
mod keyring;
mod keys;
mod mac;
mod mark;
mod record;
mod seal;

use std::{io, path::PathBuf};

pub use credential::Credential;
pub use keeper::Vault;
pub use kek::{Kek, KekId};
pub use keyring::{Init, Keyring, KeyringView};
pub use keys::KeyState;
pub use mac::Mac;
pub use mark::{Mark, Marked};
pub use record::{Binding, Kid, Opened, Purpose, Unopened};
pub use seal::Sealer;

use crate::{private::Loose, refusal::Code};

/// The keyring cannot be used. What it sealed before is lost only once somebody takes the file away.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A link, a folder, a pipe.
    #[error("`{}` is not a regular file, expected the keyring itself; put it back, or move this away to have a new one made", path.display())]
    NotAFile {
        /// The keyring.
        path: PathBuf,
    },
    /// Others could read or change the keys.
    #[error(transparent)]
    Loose(#[from] Loose),
    /// Cut off, changed, or written by a later version.
    #[error("`{}` does not read as a keyring of this version; restore it, or move it away to have a new one made, which opens nothing that this one sealed", path.display())]
    Form {
        /// The keyring.
        path: PathBuf,
    },
    /// It is sealed, and no key for it is named.
    #[error("`{}` is sealed, and [vault] key names no key that opens it; name the one that it was sealed for", path.display())]
    NoKek {
        /// The keyring.
        path: PathBuf,
    },
    /// It is sealed for other keys.
    #[error(
        "`{}` is sealed for the key {}, found the key {found} in [vault] key; put that one there, nothing was changed",
        path.display(), listed(sealed_for)
    )]
    OtherKek {
        /// The keyring.
        path: PathBuf,
        /// The keys that open it.
        sealed_for: Vec<KekId>,
        /// The one that was tried.
        found: KekId,
    },
    /// The key of the keyring cannot be read, or is none.
    #[error("cannot use `{source_text}`, which names the key of the keyring: {why}")]
    Kek {
        /// Where it should be.
        source_text: String,
        /// Why.
        why: String,
    },
    /// It is sealed for as many keys as can be.
    #[error("`{}` is sealed for two keys already; run `tollgate keys rotate --kek-done` to keep only that of [vault] key", path.display())]
    Keks {
        /// The keyring.
        path: PathBuf,
    },
    /// Only a key that another was to follow would be kept.
    #[error(
        "`{}` is sealed for the key {newest} too, which follows the key {found} of [vault] key and would be dropped; set \
         [vault] key to {newest}, restart every process that shares the keyring, and do this then. To give {newest} up, run \
         `tollgate keys rotate --kek SOURCE` with the source of {found} first", path.display()
    )]
    Older {
        /// The keyring.
        path: PathBuf,
        /// The key that would stay.
        found: KekId,
        /// The one that would go.
        newest: KekId,
    },
    /// A data key cannot be used so.
    #[error("cannot do that with the key {kid}: {why}")]
    Key {
        /// The key.
        kid: Kid,
        /// Why.
        why: &'static str,
    },
    /// It holds as many data keys as can be.
    #[error(
        "the keyring holds sixteen keys already; destroy those that seal nothing any more (`tollgate keys status` tells)"
    )]
    Full,
    /// Another keyring stands in its place.
    #[error("`{}` was replaced by another keyring while tollgate runs; put the one before back, or restart tollgate", path.display())]
    OtherKeyring {
        /// The keyring.
        path: PathBuf,
    },
    /// The file system refuses the mark.
    #[error("cannot use `{}`, which tells an older database; let this user read and write it", path.display())]
    Mark {
        /// The mark.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file system refused.
    #[error("cannot use `{}` as keyring; let this user read it, and write to its folder", path.display())]
    Unusable {
        /// The keyring.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    /// The code under which it is logged.
    pub fn code(&self) -> Code {
        Code::KeyringUnusable
    }
}

fn listed(keks: &[KekId]) -> String {
    let texts: Vec<String> = keks.iter().map(ToString::to_string).collect();
    texts.join(" or ")
}

#[cfg(test)]
mod tests;
