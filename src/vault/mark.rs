//! The mark beside the database: the highest number of changes that this process saw, which an older backup does not have.
//!
//! ```text
//! tollgate-mark 1
//! NUMBER MAC
//! ```

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use super::{Error, Mac, keyring::form};
use crate::id;

const FORM: &str = "tollgate-mark 1\n";
/// The longest file in bytes.
const LONGEST: u64 = 256;

/// The file of the mark, in the state folder of one process.
pub struct Mark {
    path: PathBuf,
    mac: Mac,
}

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// There is none: this process never ran.
    Never,
    /// The number that was seen.
    At(u64),
    /// It was changed, or written under another keyring.
    Unknown,
}

impl Mark {
    /// The mark at `path`; it holds under `mac` only.
    pub fn new(path: PathBuf, mac: Mac) -> Self {
        Self { path, mac }
    }

    /// Reads it.
    ///
    /// # Errors
    ///
    /// The file system refuses.
    pub fn read(&self) -> Result<Marked, Error> {
        let text = match content(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Marked::Never),
            read => read.map_err(|source| self.unusable(source))?,
        };
        Ok(self.parse(&text).map_or(Marked::Unknown, Marked::At))
    }

    fn parse(&self, text: &[u8]) -> Option<u64> {
        let line = text.strip_prefix(FORM.as_bytes())?.strip_suffix(b"\n")?;
        let (number, digits) = str::from_utf8(line).ok()?.split_once(' ')?;
        let number: u64 = number.parse().ok()?;
        let mut mark = [0; 32];
        let whole = form::unhex(digits.as_bytes(), &mut mark);
        (whole && self.mac.verify(&parts(&number.to_be_bytes()), &mark)).then_some(number)
    }

    /// Writes it, whole, in the place of the one before.
    ///
    /// # Errors
    ///
    /// The file system refuses; the one before stays.
    pub fn write(&self, number: u64) -> Result<(), Error> {
        let mark = id::hex(&self.mac.sign(&parts(&number.to_be_bytes())));
        let new = self.path.with_extension(id::hex(&id::random::<8>()));
        let written = replace(&self.path, &new, &format!("{FORM}{number} {mark}\n"));
        written.map_err(|source| {
            drop(fs::remove_file(&new));
            self.unusable(source)
        })
    }

    fn unusable(&self, source: io::Error) -> Error {
        let path = self.path.clone();
        Error::Mark { path, source }
    }
}

fn content(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(LONGEST).read_to_end(&mut text)?;
    Ok(text)
}

fn replace(path: &Path, new: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, path)
}

fn parts(number: &[u8; 8]) -> [&[u8]; 2] {
    [b"mark 1", number]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::Keyring;

    #[test]
    fn a_mark_is_read_back_and_every_change_of_it_shows() {
        let folder = tempfile::tempdir().unwrap();
        let ring = Keyring::open(&folder.path().join("keyring")).unwrap();
        let path = folder.path().join("vault.mark");
        let mark = Mark::new(path.clone(), ring.mac("mark"));
        assert_eq!(mark.read().unwrap(), Marked::Never);
        mark.write(41).unwrap();
        mark.write(42).unwrap();
        assert_eq!(mark.read().unwrap(), Marked::At(42));
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!((&text[..19], text.len()), ("tollgate-mark 1\n42 ", 84));
        for changed in [
            text.replace("\n42 ", "\n41 "),
            text.replace("\n42 ", "\n042  "),
            text.replace("mark 1", "mark 2"),
            text.trim_end().to_owned(),
            String::new(),
        ] {
            fs::write(&path, changed).unwrap();
            assert_eq!(mark.read().unwrap(), Marked::Unknown);
        }
        fs::write(&path, text).unwrap();
        let other = Keyring::open(&folder.path().join("other")).unwrap();
        let theirs = Mark::new(path, other.mac("mark"));
        assert_eq!(theirs.read().unwrap(), Marked::Unknown);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_mark_needs_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let ring = Keyring::open(&folder.path().join("keyring")).unwrap();
        let mark = Mark::new(folder.path().join("nowhere/vault.mark"), ring.mac("mark"));
        assert!(matches!(mark.write(1), Err(Error::Mark { .. })));
        assert_eq!(mark.read().unwrap(), Marked::Never);
    }
}
