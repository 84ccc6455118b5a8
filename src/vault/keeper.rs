//! The vault: seals and opens under the keyring as it stands now, while that is rotated.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;

use super::{
    Binding, Error, Kek, Kid, Opened, Unopened,
    keyring::{self, file::Stamp},
    keys::Keys,
    record,
};

/// Seals and opens records; cheap to clone. It shows nothing of itself.
#[derive(Clone)]
pub struct Vault(Arc<Inner>);

struct Inner {
    path: PathBuf,
    kek: Option<Kek>,
    keys: ArcSwap<Keys>,
    /// The state of the file that was looked at last, whether or not it could be used.
    seen: Mutex<Option<Stamp>>,
}

impl Vault {
    pub(super) fn new(path: PathBuf, kek: Option<Kek>, keys: Keys) -> Self {
        Self(Arc::new(Inner {
            path,
            kek,
            keys: ArcSwap::from_pointee(keys),
            seen: Mutex::new(None),
        }))
    }

    /// Seals `plain`, under the primary key, for what it belongs to.
    pub fn seal(&self, binding: &Binding<'_>, plain: &[u8]) -> Vec<u8> {
        record::seal(&self.0.keys.load(), binding, plain)
    }

    /// Opens what was sealed for `binding`. Where another process sealed it under a key that came meanwhile, the keyring
    /// is read again.
    ///
    /// # Errors
    ///
    /// Anything else is not opened, whatever is wrong with it.
    pub fn open(&self, binding: &Binding<'_>, sealed: &[u8]) -> Result<Opened, Unopened> {
        match record::open(&self.0.keys.load(), binding, sealed) {
            Err(Unopened::UnknownKey(_)) if self.follow() => {
                record::open(&self.0.keys.load(), binding, sealed)
            }
            opened => opened,
        }
    }

    /// The key that seals now.
    pub fn primary(&self) -> Kid {
        self.0.keys.load().primary().kid
    }

    /// Reads the keyring again if it was changed since it was last looked at; whether other keys hold now. One that
    /// cannot be used is told in the log once, and the keys stay.
    pub fn follow(&self) -> bool {
        {
            let mut seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Stamp::of(&self.0.path);
            if *seen == now {
                return false;
            }
            *seen = now;
        }
        self.renew().unwrap_or_else(|error| {
            let code = error.code().as_str();
            tracing::error!(code, %error, "the changed keyring was not taken; the keys before stay");
            false
        })
    }

    /// Reads the keyring again; whether other keys hold now.
    ///
    /// # Errors
    ///
    /// It cannot be used, or is another keyring; the keys stay.
    pub fn renew(&self) -> Result<bool, Error> {
        let inner = &*self.0;
        let (keys, stamp) = keyring::read(&inner.path, inner.kek.as_ref())?;
        let before = inner.keys.load();
        if !keys.same_keyring(&before) {
            let path = inner.path.clone();
            return Err(Error::OtherKeyring { path });
        }
        *inner.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(stamp);
        let changed = !keys.same_data(&before);
        if changed {
            tracing::info!(primary = %keys.primary().kid, "the keyring was changed");
            inner.keys.store(Arc::new(keys));
        }
        Ok(changed)
    }
}
