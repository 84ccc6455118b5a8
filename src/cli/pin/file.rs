//! `pins/NAME.json` on the disk.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, chown},
    path::Path,
};

use crate::{
    app::control::pins::PinsFile,
    cli::{
        Exit,
        replace::replace,
        socket::{complain, with_cause},
    },
};

/// Puts the text into the file of `server` and returns its path; the reason why not is told.
pub(super) fn write(server: &str, file: &PinsFile) -> Result<String, Exit> {
    let folder = file.folder.join("pins");
    let path = folder.join(format!("{server}.json"));
    let written = locked(&file.folder, || {
        make(&file.folder, &folder)?;
        let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        replace(&real, &file.text)
    });
    match written {
        Ok(()) => Ok(path.display().to_string()),
        Err(error) => {
            let cause = with_cause(&error);
            let line = format!(
                "`{}` cannot be written: {cause}; run the command as the owner of the policy folder",
                path.display()
            );
            complain(&[line]);
            Err(Exit::Failed)
        }
    }
}

/// One writer of the policy folder at a time.
fn locked(folder: &Path, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let lock = File::open(folder)?;
    lock.lock()?;
    work()
}

/// The subfolder is for whom the policy folder is.
fn make(policy: &Path, folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let outer = fs::metadata(policy)?;
    let mode = outer.mode() & 0o755;
    DirBuilder::new().mode(mode).create(folder)?;
    let made = fs::metadata(folder)?;
    if (made.uid(), made.gid()) != (outer.uid(), outer.gid()) {
        chown(folder, Some(outer.uid()), Some(outer.gid()))?;
    }
    Ok(())
}
