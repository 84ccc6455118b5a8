//! The folder of a journal: who may read it, which files it holds, and where the chain ended.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{
    chain::{Break, Head},
    verify::{self, LONGEST},
};
use crate::refusal::Code;

/// How much of the last file is verified at the start; holds at least one whole record.
const TAIL: u64 = 2 * LONGEST;

/// A journal cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Others could read or change the records.
    #[error(
        "`{path}` belongs to uid {uid} and has mode {mode:04o}, expected uid {expected_uid} and at most mode \
         {expected_mode:04o}; change its owner and mode, or name another state_dir", path = path.display()
    )]
    Loose {
        /// The folder or file.
        path: PathBuf,
        /// Its owner.
        uid: u32,
        /// Its permission bits.
        mode: u32,
        /// This process's user.
        expected_uid: u32,
        /// The widest mode that is accepted.
        expected_mode: u32,
    },
    /// Another process writes to this folder.
    #[error("`{path}` is locked by another process; stop it, or give this one a state_dir of its own", path = path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The end of the last file is not a chain.
    #[error(
        "`{file}` does not verify, so records were changed or lost; move it out of the folder, keep it as evidence, \
         and start again", file = file.display()
    )]
    Broken {
        /// The file.
        file: PathBuf,
        /// The first break that was found.
        source: Break,
    },
    /// The file system refused.
    #[error("cannot use `{path}` for records; give this user a writable state_dir", path = path.display())]
    Unusable {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl OpenError {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        Code::RecordUnavailable
    }
}

/// A file of records.
#[derive(Debug)]
pub(super) struct Segment {
    /// The number of its first record.
    pub(super) first: u64,
    pub(super) path: PathBuf,
}

/// Where the chain ended when the folder was opened.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) head: Head,
    /// The last file, and its length in whole records.
    pub(super) last: Option<(PathBuf, u64)>,
    /// Where a half-written line was moved to.
    pub(super) torn: Option<PathBuf>,
}

/// The files of `folder`, oldest first.
pub(super) fn segments(folder: &Path) -> io::Result<Vec<Segment>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let first = name.and_then(|name| name.strip_suffix(".jsonl")?.parse().ok());
        found.extend(first.map(|first| Segment { first, path }));
    }
    found.sort_by_key(|segment| segment.first);
    Ok(found)
}

/// A folder that this process alone writes to, for as long as the value lives.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder where it is missing, and locks it.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        make(path).map_err(unusable(path))?;
        strict(path, 0o700)?;
        let lock_path = path.join("lock");
        let lock = private().create(true).open(&lock_path);
        let lock = lock.map_err(unusable(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::Locked { path: lock_path }),
            Err(TryLockError::Error(source)) => return Err(unusable(&lock_path)(source)),
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Finds the end of the chain, after moving a half-written line aside.
    pub(super) fn tail(&self) -> Result<Tail, OpenError> {
        let mut tail = Tail {
            head: Head::start(),
            last: None,
            torn: None,
        };
        let segments = segments(&self.path).map_err(unusable(&self.path))?;
        for segment in &segments {
            strict(&segment.path, 0o600)?;
        }
        // A file without a whole record was begun by a process that was stopped at once; the chain ends before it.
        for Segment { first, path } in segments.into_iter().rev() {
            tail.torn = self
                .trim(&path, first)
                .map_err(unusable(&path))?
                .or(tail.torn);
            let length = fs::metadata(&path).map_err(unusable(&path))?.len();
            if length == 0 {
                fs::remove_file(&path).map_err(unusable(&path))?;
                continue;
            }
            tail.head = head_of(&path, length)?;
            tail.last = Some((path, length));
            break;
        }
        Ok(tail)
    }

    /// Makes the file whose first record is `first`.
    pub(super) fn create(&self, first: u64) -> io::Result<(PathBuf, File)> {
        let path = self.path.join(format!("{first:020}.jsonl"));
        let file = match private().append(true).create_new(true).open(&path) {
            // Left over from an attempt that failed after this step.
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists
                    && fs::metadata(&path)?.len() == 0 =>
            {
                private().append(true).open(&path)?
            }
            other => other?,
        };
        File::open(&self.path)?.sync_all()?;
        Ok((path, file))
    }

    /// Opens a file to which records up to `length` were written, and cuts off whatever came after them.
    pub(super) fn reopen(&self, path: &Path, length: u64) -> io::Result<File> {
        let file = private().append(true).open(path)?;
        let found = file.metadata()?.len();
        if found < length {
            return Err(io::Error::other(format!(
                "`{}` has {found} bytes, expected at least {length}: kept records were cut off",
                path.display()
            )));
        }
        file.set_len(length)?;
        Ok(file)
    }

    /// Moves what stands after the last newline of a file into one beside it, named by the file and ending in `.torn`.
    fn trim(&self, path: &Path, first: u64) -> io::Result<Option<PathBuf>> {
        let mut file = private().read(true).open(path)?;
        let length = file.metadata()?.len();
        let end = window(&mut file, length)?;
        let torn = end.iter().rev().take_while(|byte| **byte != b'\n').count();
        if torn == 0 {
            return Ok(None);
        }
        let aside = self.path.join(format!("{first:020}.torn"));
        let mut keep = private().append(true).create(true).open(&aside)?;
        keep.write_all(&end[end.len() - torn..])?;
        keep.write_all(b"\n")?;
        keep.sync_all()?;
        file.set_len(length - torn as u64)?;
        file.sync_all()?;
        File::open(&self.path)?.sync_all()?;
        Ok(Some(aside))
    }
}

/// Makes the folder and those above it where they are missing, and has that reach the disk.
fn make(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    // One that cannot be opened was there before.
    let mut above = path
        .ancestors()
        .skip(1)
        .map_while(|above| File::open(above).ok());
    above.try_for_each(|folder| folder.sync_all())
}

/// The last record of a file, after verifying the records of its last part.
fn head_of(path: &Path, length: u64) -> Result<Head, OpenError> {
    let mut file = File::open(path).map_err(unusable(path))?;
    let end = window(&mut file, length).map_err(unusable(path))?;
    let broken = |source| OpenError::Broken {
        file: path.to_owned(),
        source,
    };
    let mut lines = &end[..];
    if (end.len() as u64) < length {
        let cut = memchr::memchr(b'\n', lines).map_or(lines.len(), |newline| newline + 1);
        lines = &lines[cut..];
    }
    let first = lines
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let mut head = Head::before(first).map_err(broken)?;
    verify::verify(lines, &mut head)
        .map_err(unusable(path))?
        .map_err(|(_, source)| broken(source))?;
    Ok(head)
}

fn window(file: &mut File, length: u64) -> io::Result<Vec<u8>> {
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    file.read_to_end(&mut end)?;
    Ok(end)
}

/// Refuses what anyone but this user (or root) could have written, or may read.
fn strict(path: &Path, expected_mode: u32) -> Result<(), OpenError> {
    let found = fs::symlink_metadata(path).map_err(unusable(path))?;
    let expected_uid = nix::unistd::geteuid().as_raw();
    let (uid, mode) = (found.uid(), found.mode() & 0o7777);
    if found.is_symlink() {
        let source = io::Error::other("it is a symbolic link, expected the thing itself");
        return Err(unusable(path)(source));
    }
    if ![expected_uid, 0].contains(&uid) || mode & !expected_mode != 0 {
        return Err(OpenError::Loose {
            path: path.to_owned(),
            uid,
            mode,
            expected_uid,
            expected_mode,
        });
    }
    Ok(())
}

/// Options that write, and make files that only this user can read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

fn unusable(path: &Path) -> impl Fn(io::Error) -> OpenError + use<> {
    let path = path.to_owned();
    move |source| OpenError::Unusable {
        path: path.clone(),
        source,
    }
}
