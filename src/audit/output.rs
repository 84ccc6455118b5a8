//! The file at the chain's end: appended to and synced, replaced when it is full, opened anew after a failure.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::PathBuf,
};

use super::folder::Folder;

#[derive(Debug)]
pub(super) struct Output {
    folder: Folder,
    rotate_bytes: u64,
    /// The last file, and how many bytes of it are known to be on disk.
    current: Option<(PathBuf, u64)>,
    /// Dropped after a failure, since a failed sync says nothing about later ones through the same handle.
    file: Option<File>,
}

impl Output {
    pub(super) fn new(folder: Folder, rotate_bytes: u64, last: Option<(PathBuf, u64)>) -> Self {
        Self {
            folder,
            rotate_bytes,
            current: last,
            file: None,
        }
    }

    /// Appends whole lines, the first of which is record `first`; returns once they are on disk. After an error none of
    /// them counts: the next append begins where this one did.
    pub(super) fn append(&mut self, first: u64, lines: &[u8]) -> io::Result<()> {
        let size = lines.len() as u64;
        let full = |length| length > 0 && length + size > self.rotate_bytes;
        if self
            .current
            .as_ref()
            .is_some_and(|(_, length)| full(*length))
        {
            self.current = None;
            self.file = None;
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.open(first)?,
        };
        file.write_all(lines)?;
        file.sync_data()?;
        if file.metadata()?.nlink() == 0 {
            return Err(io::Error::other(
                "the file was removed while it was written to",
            ));
        }
        self.file = Some(file);
        if let Some((_, length)) = &mut self.current {
            *length += size;
        }
        Ok(())
    }

    fn open(&mut self, first: u64) -> io::Result<File> {
        if let Some((path, length)) = &self.current {
            match self.folder.reopen(path, *length) {
                // Removed by someone; records that it held are missing from the chain, which goes on all the same.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => return other,
            }
        }
        let (path, file) = self.folder.create(first)?;
        self.current = Some((path, 0));
        Ok(file)
    }
}
