//! `keys.toml` on the disk: one writer at a time, whole or not at all.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use super::Trouble;
use crate::{
    app::load::{self, Contents},
    config::{self, Method},
    id,
    policy::{self, KeyEntry},
};

const NAME: &str = "keys.toml";
/// The mode of a file that was not there before, beside what the folder lets its group read.
const MODE: u32 = 0o600;
const GROUP_READ: u32 = 0o040;

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
        self.write(text).map_err(|error| {
            Trouble::Failed(format!(
                "`{}` cannot be written: {error}",
                self.path.display()
            ))
        })
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or_else(|| Path::new("/"));
        // The reader leaves names out that begin with a dot.
        let temporary = folder.join(format!(".{NAME}.{}", id::hex(&id::random::<8>())));
        let result = self.write_by(&temporary, folder, text);
        if result.is_err() {
            // The cause is what counts; a leftover is ignored by every reader.
            let _ = fs::remove_file(&temporary);
        }
        result
    }

    fn write_by(&self, temporary: &Path, folder: &Path, text: &str) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(temporary)?;
        // Root may run this for a process that is not root: the file stays whose it was, and a new one is for whom the
        // folder is.
        let (owner, mode) = match fs::metadata(&self.path) {
            Ok(before) => (before.clone(), before.mode() & 0o7777),
            Err(_) => {
                let folder = fs::metadata(folder)?;
                let mode = MODE | (folder.mode() & GROUP_READ);
                (folder, mode)
            }
        };
        let made = file.metadata()?;
        if (made.uid(), made.gid()) != (owner.uid(), owner.gid()) {
            fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(temporary, &self.path)?;
        File::open(folder)?.sync_all()
    }
}

fn read(text: &str) -> Result<Vec<KeyEntry>, Trouble> {
    let file = policy::File {
        path: NAME.to_owned(),
        text: text.to_owned(),
    };
    policy::keys(&file).map_err(Trouble::Faults)
}
