//! A file of the policy folder is replaced whole or not at all, and stays whose it was.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::Path,
};

use crate::id;

/// The mode of a file that was not there before, beside what the folder lets its group read.
const MODE: u32 = 0o600;
const GROUP_READ: u32 = 0o040;

/// Puts `text` in the place of the file at `path`, which is no link; durable on return.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The reader leaves names out that begin with a dot.
    let temporary = folder.join(format!(".{name}.{}", id::hex(&id::random::<8>())));
    let result = write_by(&temporary, folder, path, text);
    if result.is_err() {
        // The cause is what counts; a leftover is ignored by every reader.
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn write_by(temporary: &Path, folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(temporary)?;
    // Root may run this for a process that is not root: the file stays whose it was, and a new one is for whom the
    // folder is.
    let (owner, mode) = match fs::metadata(path) {
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
    fs::rename(temporary, path)?;
    File::open(folder)?.sync_all()
}
