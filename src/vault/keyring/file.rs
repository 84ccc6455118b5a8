//! The file on the disk: who may have written it, how it comes there whole, and how it is changed by one at a time.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, fchown},
    path::Path,
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg, OFlag},
};
use zeroize::Zeroizing;

use super::{super::Error, form::LONGEST};
use crate::{id, private};

/// Which state of the file was read: it is changed by putting another in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::vault) struct Stamp {
    file: (u64, u64),
    written: (i64, i64),
    bytes: u64,
}

impl Stamp {
    fn new(found: &Metadata) -> Self {
        Self {
            file: (found.dev(), found.ino()),
            written: (found.mtime(), found.mtime_nsec()),
            bytes: found.len(),
        }
    }

    /// Of what stands at `path` now, if anything.
    pub(in crate::vault) fn of(path: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        Some(Self::new(&found))
    }
}

/// Reads the file, which is this process's own.
pub(super) fn read(path: &Path) -> Result<(Zeroizing<Vec<u8>>, Stamp), Error> {
    let file = open(path)?;
    content(path, &file)
}

fn content(path: &Path, file: &File) -> Result<(Zeroizing<Vec<u8>>, Stamp), Error> {
    let found = private(path, file)?;
    let mut text = Zeroizing::new(Vec::with_capacity(LONGEST + 1));
    let mut file = file.take(LONGEST as u64 + 1);
    file.read_to_end(&mut text).map_err(unusable(path))?;
    Ok((text, Stamp::new(&found)))
}

/// Opens for reading, without following a link or waiting for the other end of a pipe.
fn open(path: &Path) -> Result<File, Error> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path);
    opened.map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
        // A link, or a socket.
        Some(Errno::ELOOP | Errno::ENXIO) => Error::NotAFile { path: path.into() },
        _ => unusable(path)(error),
    })
}

/// Refuses what is no file, and a file that somebody else could have written or may read.
fn private(path: &Path, file: &File) -> Result<Metadata, Error> {
    let found = file.metadata().map_err(unusable(path))?;
    if !found.is_file() {
        return Err(Error::NotAFile { path: path.into() });
    }
    private::check(path, &found)?;
    Ok(found)
}

/// Puts a new file at `path`, unless one has come there meanwhile. It appears whole: the name is a second link to a file
/// that has reached the disk.
pub(super) fn make(path: &Path, text: &str) -> Result<(), Error> {
    let make = || {
        let new = path.with_extension(id::hex(&id::random::<8>()));
        let linked = write(&new, text, None).and_then(|()| match fs::hard_link(&new, path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        });
        // Where it was never made there is nothing to take away.
        drop(fs::remove_file(&new));
        linked?;
        sync_folder(path)
    };
    make().map_err(unusable(path))
}

/// Puts what `change` makes of the file's content in its place, whole, while nobody else does. The file keeps its owner.
pub(super) fn change<T>(
    path: &Path,
    change: impl FnOnce(&[u8]) -> Result<(Option<Zeroizing<String>>, T), Error>,
) -> Result<T, Error> {
    let locked = lock(path)?;
    let (text, _) = content(path, &locked)?;
    let (changed, outcome) = change(&text)?;
    let Some(changed) = changed else {
        return Ok(outcome);
    };
    let replace = || {
        let new = path.with_extension(id::hex(&id::random::<8>()));
        let renamed =
            write(&new, &changed, Some(&locked.metadata()?)).and_then(|()| fs::rename(&new, path));
        if renamed.is_err() {
            drop(fs::remove_file(&new));
        }
        renamed?;
        sync_folder(path)
    };
    replace().map_err(unusable(path))?;
    Ok(outcome)
}

/// Locks the file that stands at `path`: not one that was replaced while the lock was waited for.
fn lock(path: &Path) -> Result<Flock<File>, Error> {
    loop {
        let file = open(path)?;
        let locked = Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, errno)| unusable(path)(errno.into()))?;
        let found = locked.metadata().map_err(unusable(path))?;
        if Stamp::of(path) == Some(Stamp::new(&found)) {
            return Ok(locked);
        }
    }
}

fn write(new: &Path, text: &str, like: Option<&Metadata>) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(new)?;
    if let Some(like) = like {
        fchown(&file, Some(like.uid()), Some(like.gid()))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn unusable(path: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Unusable {
        path: path.clone(),
        source,
    }
}
