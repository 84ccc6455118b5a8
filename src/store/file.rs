//! The file: made with mode 0600, and refused where somebody else could have written it or may read it.

use std::{
    ffi::OsString,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, ErrorKind},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::Error;
use crate::private;

/// What SQLite keeps beside a database while it is in use.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// A file that nobody else can have written, by the names that its folder has now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Own {
    /// Without a link in it: SQLite follows none.
    pub(super) path: PathBuf,
    /// Which file stands there.
    identity: (u64, u64),
}

impl Own {
    /// Makes the file at `path` where there is none, and checks it and what is beside it.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let unusable = unusable(path);
        let none = || io::Error::from(ErrorKind::InvalidInput);
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(unusable(none()));
        };
        let folder = folder.canonicalize().map_err(&unusable)?;
        let path = folder.join(name);
        match make(&path).and_then(|()| File::open(&folder)?.sync_all()) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made.map_err(&unusable)?,
        }
        // Looked at without being opened: to close it would take away this process's locks on it.
        let found = fs::symlink_metadata(&path).map_err(&unusable)?;
        private(&path, &found)?;
        for ending in BESIDE {
            let mut beside: OsString = path.clone().into();
            beside.push(ending);
            let beside = PathBuf::from(beside);
            match fs::symlink_metadata(&beside) {
                Ok(found) => private(&beside, &found)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(unusable(error)),
            }
        }
        Ok(Self {
            path,
            identity: identity(&found),
        })
    }

    /// Whether the file is still the one that its name leads to.
    pub(super) fn stands(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity)
    }
}

fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

fn make(path: &Path) -> io::Result<()> {
    let mut new = OpenOptions::new();
    new.write(true).create_new(true).mode(0o600).open(path)?;
    Ok(())
}

fn private(path: &Path, found: &Metadata) -> Result<(), Error> {
    if !found.is_file() {
        return Err(Error::NotAFile { path: path.into() });
    }
    Ok(private::check(path, found)?)
}

fn unusable(path: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Unusable {
        path: path.clone(),
        source,
    }
}
