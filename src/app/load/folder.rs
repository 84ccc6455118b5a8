//! Reading the policy folder: bounded, and only what nobody else could have written.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read,
    path::Path,
};

use sha2::{Digest, Sha256};

use super::guard;
use crate::{catalog::pins_file, policy, table::Fault};

/// Files in a policy folder at most.
const MOST_FILES: usize = 1000;
/// Bytes of one file at most; a pins file holds a whole catalogue.
const LARGEST_FILE: usize = 1 << 20;
/// Bytes of all files together at most, those of pins left out.
const LARGEST_FOLDER: usize = 16 << 20;
/// Bytes of all pins files together at most.
const LARGEST_PINS: usize = 128 << 20;
/// The subfolder of pins files.
const PINS: &str = "pins/";

/// The folder's files at one moment, in order of their paths, and what is wrong with them as files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Readable ones.
    pub files: Vec<policy::File>,
    /// Loose modes, foreign owners, sizes, texts that are none.
    pub faults: Vec<Fault>,
    /// What the guard said of folders, so that it is not said of each file in them again.
    loose: Vec<String>,
}

impl Contents {
    /// Reads `*.toml` in the folder and in its `servers`, and `pins/*.json`; names beginning with `_` or `.` are left out.
    pub fn read(folder: &Path) -> Self {
        let mut contents = Self::default();
        if !folder.is_dir() {
            let message = "there is no such folder; make it, or name another with --policy DIR";
            contents
                .faults
                .push(Fault::whole(folder.display().to_string(), message));
            return contents;
        }
        contents.read_directory(folder, "");
        contents.files.sort_by(|a, b| a.path.cmp(&b.path));
        if contents.is_too_much() {
            let message = format!(
                "holds at least {} files of {} bytes and {} bytes of pins, expected at most {MOST_FILES} files of \
                 {LARGEST_FOLDER} bytes and {LARGEST_PINS} bytes of pins; remove what is not policy",
                contents.files.len(),
                contents.bytes(false),
                contents.bytes(true)
            );
            contents
                .faults
                .push(Fault::whole(folder.display().to_string(), message));
        }
        contents
    }

    fn is_too_much(&self) -> bool {
        self.files.len() > MOST_FILES
            || self.bytes(false) > LARGEST_FOLDER
            || self.bytes(true) > LARGEST_PINS
    }

    /// Bytes of the pins files, or of all others.
    fn bytes(&self, pins: bool) -> usize {
        let files = self.files.iter();
        files
            .filter(|file| file.path.starts_with(PINS) == pins)
            .map(|file| file.text.len())
            .sum()
    }

    fn read_directory(&mut self, folder: &Path, prefix: &str) {
        let directory = folder.join(prefix);
        let named = |what: &str| Fault::whole(format!("{}/{prefix}", folder.display()), what);
        // What stands in a loose folder is read all the same: nothing is loaded, and its other faults show too.
        if let Err(why) = guard::check(folder, &directory)
            && !self.loose.contains(&why)
        {
            self.faults.push(named(&why));
            self.loose.push(why);
        }
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) => {
                self.faults.push(named(&format!("cannot be read: {error}")));
                return;
            }
        };
        for entry in entries.flatten().take(10 * MOST_FILES) {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if name.starts_with(['_', '.']) {
                continue;
            }
            let path = format!("{prefix}{name}");
            let is_pins = prefix == PINS && name.ends_with(".json");
            let is_folder = || folder.join(&path).is_dir();
            if path == "servers" || path == "pins" && is_folder() {
                self.read_directory(folder, &format!("{path}/"));
            } else if name.ends_with(".toml") || is_pins {
                self.read_file(folder, &path);
            } else {
                self.faults.extend(overlooked(folder, &path));
            }
        }
    }

    fn read_file(&mut self, folder: &Path, path: &str) {
        // What is too much is not read at all.
        if self.is_too_much() {
            return;
        }
        let real = folder.join(path);
        if let Err(why) = guard::check(folder, &real)
            && !self.loose.contains(&why)
        {
            self.faults.push(Fault::whole(path, why));
            return;
        }
        let text = content(&real, largest(path)).and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| "not UTF-8 text; save it as UTF-8".to_owned())
        });
        match text {
            Ok(text) => self.files.push(policy::File {
                path: path.to_owned(),
                text,
            }),
            Err(why) => self.faults.push(Fault::whole(path, why)),
        }
    }

    /// SHA-256 over files, faults and `references` (files that files name), each with its length.
    pub fn digest(&self, references: &BTreeMap<String, Result<Vec<u8>, String>>) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(bytes);
        };
        for file in &self.files {
            add(file.path.as_bytes());
            add(file.text.as_bytes());
        }
        for fault in &self.faults {
            add(fault.to_string().as_bytes());
        }
        for (path, content) in references {
            add(path.as_bytes());
            match content {
                Ok(bytes) => add(bytes),
                Err(why) => add(why.as_bytes()),
            }
        }
        hash.finalize().into()
    }
}

/// Reads one file, wherever it is, if nobody but this user and root could have written it.
pub(super) fn read_one(folder: &Path, path: &Path) -> Result<Vec<u8>, String> {
    guard::check(folder, path)?;
    content(path, LARGEST_FILE)
}

/// Bytes that the file at this path within the folder may have.
fn largest(path: &str) -> usize {
    if path.starts_with(PINS) {
        pins_file::LARGEST
    } else {
        LARGEST_FILE
    }
}

fn content(path: &Path, largest: usize) -> Result<Vec<u8>, String> {
    // A pipe would hang the reader as it is opened.
    if !fs::metadata(path).map_err(guard::unreadable)?.is_file() {
        return Err("not a regular file; put one in its place".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(guard::unreadable)?;
    file.take(largest as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(guard::unreadable)?;
    if bytes.len() > largest {
        return Err(format!(
            "larger than {largest} bytes; policy files are smaller, so this is none"
        ));
    }
    Ok(bytes)
}

/// A subfolder that looks like policy and is not read; one that holds other things (certificates) is nobody's mistake.
fn overlooked(folder: &Path, path: &str) -> Option<Fault> {
    let names = names(&folder.join(path));
    let mut files = names.iter().filter(|name| name.ends_with(".toml"));
    let first = files.next()?;
    Some(Fault::whole(
        format!("{path}/{first}"),
        format!(
            "in a folder that is not read; move it to servers/{first} if it describes a server, or begin the \
             folder's name with `_` to leave it out"
        ),
    ))
}

/// What a folder holds, in order, without names beginning with `_` or `.`; nothing if it is none.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries
        .take(10 * MOST_FILES)
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with(['_', '.'])).collect();
    names.sort();
    names
}
