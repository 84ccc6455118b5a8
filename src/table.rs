//! Owns: reading a TOML document key by key, keeping every fault with its place.
//! Imports: no room.
//! Never: stops at the first fault, or lets an unknown key pass.
//! Fails as: a list of [`Fault`]s, each `file:line:col: key: message`.

mod document;
mod scalar;
mod values;

use std::{fmt, sync::Arc};

pub use document::{Table, read};

/// One thing wrong in one place of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The file, as the operator named it.
    pub file: String,
    /// Line, from 1; zero where the fault is the whole file's.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// The dotted key, empty where there is none.
    pub key: String,
    /// What was found, what was expected, what to do.
    pub message: String,
}

impl Fault {
    /// A fault of a whole file, or of something that is not a file (an environment variable).
    pub fn whole(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line: 0,
            column: 0,
            key: String::new(),
            message: one_line(message.into()),
        }
    }
}

/// A text that may quote what a file says, with whatever would break its line or rearrange it made visible.
fn one_line(text: String) -> String {
    let quotes = |letter| matches!(letter, '"' | '\'' | '\\');
    if text
        .chars()
        .all(|letter| quotes(letter) || letter.escape_debug().len() == 1)
    {
        return text;
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if quotes(letter) {
            shown.push(letter);
        } else {
            shown.extend(letter.escape_debug());
        }
    }
    shown
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.file)?;
        if self.line > 0 {
            write!(out, ":{}:{}", self.line, self.column)?;
        }
        if !self.key.is_empty() {
            write!(out, ": {}", self.key)?;
        }
        write!(out, ": {}", self.message)
    }
}

/// Where a value stands, for faults that only show when files are seen together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    file: Arc<str>,
    line: usize,
    column: usize,
    key: String,
}

impl Place {
    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// A fault at this place.
    pub fn fault(&self, message: impl Into<String>) -> Fault {
        Fault {
            file: self.file.to_string(),
            line: self.line,
            column: self.column,
            key: one_line(self.key.clone()),
            message: one_line(message.into()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<T> {
    /// What was written.
    pub value: T,
    /// Where it stands.
    pub place: Place,
}

impl<T> Item<T> {
    /// A fault at this value.
    pub fn fault(&self, message: impl Into<String>) -> Fault {
        self.place.fault(message)
    }
}

#[cfg(test)]
mod tests;
