//! A piece of a document.

use std::{borrow::Cow, ops::Range};

use super::text::unescape;

/// A value as it stands in its document: the text, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    text: &'a str,
    start: usize,
}

impl<'a> Part<'a> {
    pub(super) fn new(text: &'a str, start: usize) -> Self {
        Self { text, start }
    }

    /// The JSON text, without surrounding white space.
    pub fn as_str(&self) -> &'a str {
        self.text
    }

    /// The bytes of the document that it takes.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        self.text.starts_with('{')
    }

    /// Its decoded text if it is a string; a lone surrogate, which strict scans refuse, becomes U+FFFD.
    pub fn string(&self) -> Option<Cow<'a, str>> {
        let inner = self.text.strip_prefix('"')?.strip_suffix('"')?;
        Some(unescape(inner))
    }

    /// The same part of a document in which this part's document begins at byte `offset`.
    pub(in crate::mcp) fn shifted(self, offset: usize) -> Self {
        Self {
            start: self.start + offset,
            ..self
        }
    }
}
