//! Owns: reading a TOML document key by key, keeping every fault with its place.
//! Imports: no room.
//! Never: stops at the first fault, or lets an unknown key pass.
//! Fails as: a list of [`Fault`]s, each `file:line:col: key: message`.

use std::fmt;

/// One thing wrong in one place of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The file, as the operator named it.
    pub file: String,
    /// Line and column, from 1; zero where the fault is the whole file's.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// The dotted key, empty where there is none.
    pub key: String,
    /// What was found, what was expected, what to do.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if !self.key.is_empty() {
            write!(out, "{}: ", self.key)?;
        }
        out.write_str(&self.message)
    }
}
