//! The file of keys: made once, read at every start, never written over.
//!
//! It is two lines of text, and room is left for more keys:
//!
//! ```text
//! tollgate-keyring 1
//! 1 <64 lower-case hexadecimal digits>
//! ```
//!
//! The first line names the form; each line after it would be a key, its id before it. This version knows one.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use nix::{errno::Errno, fcntl::OFlag};
use zeroize::Zeroizing;

use super::{Error, Mac, Sealer};
use crate::{id, private};

const FORM: &str = "tollgate-keyring 1\n";
/// The id of the only key.
const FIRST: u32 = 1;
/// The most that is read of the file; a keyring of this form is shorter.
const LONGEST: usize = 1024;

/// The keys of this gateway, from which every other is derived; wiped when dropped.
pub struct Keyring {
    id: u32,
    key: Zeroizing<[u8; 32]>,
}

impl Keyring {
    /// Reads the keyring at `path`, which is absolute, and makes one where there is none: of several processes that do so
    /// at once, all get the same.
    ///
    /// # Errors
    ///
    /// A file that is there and cannot be used stays as it is.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let read = match open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                make(path).map_err(unusable(path))?;
                open(path)
            }
            read => read,
        };
        let file = read.map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
            // A link, or a socket.
            Some(Errno::ELOOP | Errno::ENXIO) => Error::NotAFile { path: path.into() },
            _ => unusable(path)(error),
        })?;
        private(path, &file)?;
        let mut text = Zeroizing::new(Vec::with_capacity(LONGEST));
        let mut file = file.take(LONGEST as u64);
        file.read_to_end(&mut text).map_err(unusable(path))?;
        let (id, key) = parse(&text).ok_or_else(|| Error::Form { path: path.into() })?;
        Ok(Self { id, key })
    }

    /// What seals for `purpose`, with a key of its own: nothing that is sealed for one purpose opens for another.
    pub fn sealer(&self, purpose: &'static str) -> Sealer {
        Sealer::derive(self.id, &self.key, purpose)
    }

    /// What marks for `purpose`, with a key of its own, which no sealer has.
    pub fn mac(&self, purpose: &'static str) -> Mac {
        Mac::derive(&self.key, purpose)
    }
}

/// Opens for reading, without following a link or waiting for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)
}

/// Refuses what is no file, and a file that somebody else could have written or may read.
fn private(path: &Path, file: &File) -> Result<(), Error> {
    let found = file.metadata().map_err(unusable(path))?;
    if !found.is_file() {
        return Err(Error::NotAFile { path: path.into() });
    }
    Ok(private::check(path, &found)?)
}

/// Puts a new keyring at `path`, unless one has come there meanwhile. It appears whole: the name is a second link to a
/// file that has reached the disk.
fn make(path: &Path) -> io::Result<()> {
    let new = path.with_extension(id::hex(&id::random::<8>()));
    let linked = write(&new).and_then(|()| match fs::hard_link(&new, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    // Where it was never made there is nothing to take away.
    drop(fs::remove_file(&new));
    linked?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn write(new: &Path) -> io::Result<()> {
    let key = Zeroizing::new(id::random::<32>());
    let digits = Zeroizing::new(id::hex(&*key));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(new)?;
    let text = Zeroizing::new(format!("{FORM}{FIRST} {}\n", *digits));
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The id and the key of a whole keyring.
pub(super) fn parse(text: &[u8]) -> Option<(u32, Zeroizing<[u8; 32]>)> {
    let line = text.strip_prefix(FORM.as_bytes())?.strip_suffix(b"\n")?;
    let digits = line.strip_prefix(format!("{FIRST} ").as_bytes())?;
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    let mut key = Zeroizing::new([0; 32]);
    if pairs.len() != key.len() {
        return None;
    }
    for (byte, [high, low]) in key.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some((FIRST, key))
}

fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

fn unusable(path: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Unusable {
        path: path.clone(),
        source,
    }
}
