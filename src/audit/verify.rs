//! Verification of files and folders, streaming: a record is read, checked and forgotten.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use super::{
    chain::{Break, Head},
    folder,
};

/// No record is longer than this, in bytes.
pub(super) const LONGEST: u64 = 1 << 20;

/// Why a chain could not be verified to its end.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The first place where the chain breaks.
    #[error("the chain breaks at {file}:{line}", file = file.display())]
    Chain {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        source: Break,
    },
    /// A file could not be read.
    #[error("cannot read `{path}`", path = path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A folder whose chain holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The number of the first record that is still there; over 1 where old files were archived.
    pub first: u64,
    /// The last record. Whether records are missing after it is told only by comparing it with a head kept elsewhere.
    pub head: Head,
}

/// Checks that `reader` holds the records after `head`, and moves `head` to the last one that holds.
///
/// # Errors
///
/// The line, from 1, at which the chain breaks, and how; or the failure to read.
pub fn verify(mut reader: impl BufRead, head: &mut Head) -> io::Result<Result<(), (u64, Break)>> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let checked = match line.strip_suffix(b"\n") {
            Some(line) => head.check(line),
            None => Err(Break::Cut),
        };
        if let Err(fault) = checked {
            return Ok(Err((number, fault)));
        }
    }
    Ok(Ok(()))
}

/// Checks every record in a journal's folder. While a journal writes to it, the last line may be seen half written.
pub fn verify_folder(path: &Path) -> Result<Verified, Broken> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| Broken::Unreadable { path, source }
    };
    let segments = folder::segments(path).map_err(unreadable(path))?;
    let mut head = Head::start();
    if let Some(oldest) = segments.first() {
        head = start_of(&oldest.path).map_err(unreadable(&oldest.path))?;
    }
    let first = head.seq + 1;
    for segment in segments {
        let file = File::open(&segment.path).map_err(unreadable(&segment.path))?;
        verify(BufReader::new(file), &mut head)
            .map_err(unreadable(&segment.path))?
            .map_err(|(line, source)| Broken::Chain {
                file: segment.path,
                line,
                source,
            })?;
    }
    Ok(Verified { first, head })
}

/// Where the oldest file says that it begins; only a chain that begins with record 1 is known to be whole.
fn start_of(path: &Path) -> io::Result<Head> {
    let mut line = Vec::new();
    BufReader::new(File::open(path)?)
        .take(LONGEST)
        .read_until(b'\n', &mut line)?;
    let before = Head::before(line.strip_suffix(b"\n").unwrap_or(&line));
    Ok(match before {
        Ok(head) if head.seq > 0 => head,
        _ => Head::start(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the size of a file, no more than one record of it is held.
    #[test]
    fn a_line_without_end_is_not_read_to_its_end() {
        let endless = BufReader::new(io::repeat(b'x'));
        let broken = verify(endless, &mut Head::start()).expect("it can be read");
        assert_eq!(broken, Err((1, Break::Cut)));
    }
}
