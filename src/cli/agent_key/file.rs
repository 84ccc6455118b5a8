//! `keys.toml` on the disk: one writer at a time, whole or not at all.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::Trouble;
use crate::{
    app::load::{self, Contents},
    cli::replace::replace,
    config::{self, Method},
    policy::{self, KeyEntry},
};

const NAME: &str = "keys.toml";

/// The file, held against other writers for as long as this lives.
#[derive(Debug)]
pub(super) struct KeysFile {
    /// The real file, behind links.
    path: PathBuf,
    text: String,
    /// Whether `tollgate.toml` lets everyone in as the local user, so that keys would be a mistake.
    local: bool,
    _lock: File,
}

impl KeysFile {
    /// Waits for its turn and reads the file; one that is not there is empty.
    pub(super) fn open(folder: &Path) -> Result<Self, Trouble> {
        let failed = |error: io::Error| {
            Trouble::Failed(format!("`{}` cannot be used: {error}", folder.display()))
        };
        let lock = File::open(folder).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let contents = Contents::read(folder);
        if !contents.faults.is_empty() {
            return Err(Trouble::Faults(contents.faults));
        }
        let settings = contents.files.iter().find(|file| file.path == config::FILE);
        let settings = config::read(settings.map(|file| &*file.text), &load::environment());
        let path = folder.join(NAME);
        let file = contents.files.into_iter().find(|file| file.path == NAME);
        Ok(Self {
            path: fs::canonicalize(&path).unwrap_or(path),
            text: file.map_or_else(String::new, |file| file.text),
            local: settings.is_ok_and(|settings| settings.identity.method != Method::Keys),
            _lock: lock,
        })
    }

    pub(super) fn local(&self) -> bool {
        self.local
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The keys in the order of the file.
    pub(super) fn keys(&self) -> Result<Vec<KeyEntry>, Trouble> {
        read(&self.text)
    }

    /// Puts `text` in the file's place, if it is one that would be taken up.
    pub(super) fn replace(self, text: &str) -> Result<(), Trouble> {
        read(text)?;
        replace(&self.path, text).map_err(|error| {
            Trouble::Failed(format!(
                "`{}` cannot be written: {error}",
                self.path.display()
            ))
        })
    }
}

/// The keys of a text.
pub(super) fn read(text: &str) -> Result<Vec<KeyEntry>, Trouble> {
    let file = policy::File {
        path: NAME.to_owned(),
        text: text.to_owned(),
    };
    policy::keys(&file).map_err(Trouble::Faults)
}
