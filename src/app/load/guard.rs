//! Who could have written a file: as ssh does with keys, a loose one is refused.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use nix::sys::statvfs::{FsFlags, statvfs};

/// The facts that decide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// The owner.
    pub(super) uid: u32,
    /// Permission bits.
    pub(super) mode: u32,
    /// A folder rather than a file.
    pub(super) folder: bool,
    /// It is on a read-only mount, as a ConfigMap is: modes open nothing there.
    pub(super) read_only: bool,
}

const STICKY: u32 = 0o1000;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Checks the real file behind `path`, and every folder between it and the policy folder; where a link leads out of
/// the policy folder, every folder above the file.
pub(in crate::app) fn check(folder: &Path, path: &Path) -> Result<(), String> {
    let real = fs::canonicalize(path).map_err(unreadable)?;
    let root = fs::canonicalize(folder).map_err(unreadable)?;
    let own_uid = nix::unistd::geteuid().as_raw();
    let within = real.starts_with(&root);
    for part in real.ancestors() {
        let metadata = fs::metadata(part).map_err(unreadable)?;
        let facts = Facts {
            uid: metadata.uid(),
            mode: metadata.mode() & 0o7777,
            folder: metadata.is_dir(),
            read_only: statvfs(part).is_ok_and(|facts| facts.flags().contains(FsFlags::ST_RDONLY)),
        };
        let remedy = if within {
            format!("chmod -R go-w {}", folder.display())
        } else {
            format!("chmod go-w {}", part.display())
        };
        if let Some(why) = looseness(facts, own_uid, &remedy) {
            return Err(format!("`{}` is {why}", part.display()));
        }
        if within && part == root {
            break;
        }
    }
    Ok(())
}

/// Why a file cannot be read, and what to do about it.
pub(super) fn unreadable(error: io::Error) -> String {
    let next = match error.kind() {
        io::ErrorKind::NotFound => "; put it there, or correct the path",
        io::ErrorKind::PermissionDenied => "; let tollgate's user read it",
        _ => "",
    };
    format!("cannot be read: {error}{next}")
}

/// Why somebody else could change what has these facts; `None` if nobody but `own_uid` and root can. `remedy` is the
/// command that takes the write bits away.
pub(super) fn looseness(facts: Facts, own_uid: u32, remedy: &str) -> Option<String> {
    if facts.read_only {
        return None;
    }
    if facts.uid != own_uid && facts.uid != 0 {
        let expected = match own_uid {
            0 => "0".to_owned(),
            own_uid => format!("{own_uid} or 0"),
        };
        return Some(format!(
            "owned by uid {}, expected {expected}; `chown` it to the user that runs tollgate, or to root",
            facts.uid
        ));
    }
    // In a sticky folder only owners rename and remove, so a file there is as safe as its own mode.
    let sticky = facts.folder && facts.mode & STICKY != 0;
    if facts.mode & WRITABLE_BY_OTHERS != 0 && !sticky {
        return Some(format!(
            "writable by group or others (mode {:04o}); run `{remedy}`",
            facts.mode
        ));
    }
    None
}
