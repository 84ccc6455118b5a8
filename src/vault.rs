//! Owns: the keyring in the state folder, and everything that only this gateway may open again, or can have written.
//! Imports: layer 0.
//! Never: shows a key, or writes over a keyring that it cannot read.
//! Fails as: [`Error`] at the start; sealed bytes that are not its own as `None`.

mod credential;
mod keyring;
mod mac;
mod record;
mod seal;

use std::{io, path::PathBuf};

pub use credential::Credential;
pub use keyring::Keyring;
pub use mac::Mac;
pub use record::{Binding, Kid, Opened, Purpose, Unopened, Vault};
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

#[cfg(test)]
mod tests;
