//! One iterative JSON tokenizer (RFC 8259) over bytes, with two sets of rules.
//!
//! Parsers disagree about duplicate keys, the case of keys, lone surrogates and numbers beyond their types. Under [`Rules::Strict`] a
//! document that is accepted reads alike everywhere, so what is judged is what is forwarded.

mod error;
mod keys;
mod part;
mod skip;
mod text;

use std::{borrow::Cow, ops::Range};

pub use error::ScanError;
use keys::Keys;
pub(super) use keys::lookalike;
pub use part::Part;
pub(super) use skip::{container, members};
pub(super) use text::{plain_end, unescape};

/// How much of JSON is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Messages that are judged: no duplicate keys, keys that look like a member of the protocol, lone surrogates,
    /// infinite numbers or integers outside i64 and u64; 64 containers deep at most.
    Strict,
    /// Messages of tool servers: any valid JSON up to 128 containers deep.
    Loose,
}

impl Rules {
    pub(super) fn depth(self) -> usize {
        match self {
            Self::Strict => 64,
            Self::Loose => 128,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    container: Container,
    fresh: bool,
}

/// Walks one document; the caller descends where it wants to look, and skips the rest with [`Scanner::value`].
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    rules: Rules,
    open: Vec<Frame>,
    keys: Keys<'a>,
    last_key: usize,
}

impl<'a> Scanner<'a> {
    /// Begins at the first byte; the whole document must be UTF-8.
    pub(crate) fn new(bytes: &'a [u8], rules: Rules) -> Result<Self, ScanError> {
        let text = std::str::from_utf8(bytes).map_err(|error| ScanError::Utf8 {
            at: error.valid_up_to(),
        })?;
        Ok(Self {
            text,
            at: 0,
            rules,
            open: Vec::with_capacity(8),
            keys: match rules {
                Rules::Strict => Keys::with_room(),
                Rules::Loose => Keys::default(),
            },
            last_key: 0,
        })
    }

    /// The first byte of what comes next, past white space.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Goes into the object that comes next; then ask for each [`Scanner::key`] and take its value.
    pub(crate) fn enter_object(&mut self) -> Result<(), ScanError> {
        self.enter(b'{', Container::Object, "an object")
    }

    /// Goes into the array that comes next; then ask for each [`Scanner::element`] and take its value.
    pub(crate) fn enter_array(&mut self) -> Result<(), ScanError> {
        self.enter(b'[', Container::Array, "an array")
    }

    /// The next key of the object that was entered last, decoded; `None` leaves the object.
    pub(crate) fn key(&mut self) -> Result<Option<Cow<'a, str>>, ScanError> {
        if !self.another(b'}', "`,` or `}`")? {
            return Ok(None);
        }
        if self.peek() != Some(b'"') {
            return Err(self.expected("a key"));
        }
        self.last_key = self.at;
        let (key, escaped) = self.string()?;
        let key = if escaped {
            unescape(key)
        } else {
            Cow::Borrowed(key)
        };
        if self.rules == Rules::Strict && !self.keys.insert(key.clone()) {
            return Err(ScanError::DuplicateKey { at: self.at });
        }
        self.take(b':', "`:`")?;
        Ok(Some(key))
    }

    /// Whether the array that was entered last has another element; if not, it is left.
    pub(crate) fn element(&mut self) -> Result<bool, ScanError> {
        self.another(b']', "`,` or `]`")
    }

    /// Takes the whole value that comes next, whatever it holds.
    pub(crate) fn value(&mut self) -> Result<Part<'a>, ScanError> {
        let floor = self.open.len();
        let first = self.peek();
        let start = self.at;
        if !matches!(first, Some(b'{' | b'[')) {
            self.scalar(first)?;
            return Ok(self.part(start..self.at));
        }
        if let Some(end) = self.skip() {
            self.at = end;
            return Ok(self.part(start..end));
        }
        let mut next = first;
        loop {
            match next {
                Some(b'{') => self.enter_object()?,
                Some(b'[') => self.enter_array()?,
                _ => self.scalar(next)?,
            }
            if !self.climb(floor)? {
                return Ok(self.part(start..self.at));
            }
            next = self.peek();
        }
    }

    /// The end of the container that comes next, if no rule has to be held against it; `None` for what is to be read step
    /// by step.
    fn skip(&self) -> Option<usize> {
        if self.rules == Rules::Strict {
            return None;
        }
        let depth = self.rules.depth() - self.open.len();
        let rest = skip::container(&self.text.as_bytes()[self.at..], depth)?;
        Some(self.text.len() - rest.len())
    }

    /// Takes the value of a key that is none of `members`; strict rules refuse a key that some parser takes for one.
    pub(crate) fn other(
        &mut self,
        key: &str,
        members: &[&'static str],
    ) -> Result<Part<'a>, ScanError> {
        if self.rules == Rules::Strict
            && let Some(member) = lookalike(key, members)
        {
            let at = self.at;
            return Err(ScanError::Lookalike { at, member });
        }
        self.value()
    }

    /// Nothing but white space may be left.
    pub(crate) fn end(&mut self) -> Result<(), ScanError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the document")),
        }
    }

    /// Where the walk stands.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Where the key that was read last begins.
    pub(crate) fn last_key(&self) -> usize {
        self.last_key
    }

    /// What lies between two positions.
    pub(crate) fn part(&self, range: Range<usize>) -> Part<'a> {
        Part::new(&self.text[range.clone()], range.start)
    }

    /// Leaves finished containers; true when another value comes, false when only `floor` containers are open.
    fn climb(&mut self, floor: usize) -> Result<bool, ScanError> {
        while self.open.len() > floor {
            let more = match self.open.last().map(|frame| frame.container) {
                Some(Container::Object) => self.key()?.is_some(),
                _ => self.element()?,
            };
            if more {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn enter(
        &mut self,
        byte: u8,
        container: Container,
        expected: &'static str,
    ) -> Result<(), ScanError> {
        self.take(byte, expected)?;
        let max = self.rules.depth();
        if self.open.len() == max {
            return Err(ScanError::Depth {
                at: self.at - 1,
                max,
            });
        }
        self.open.push(Frame {
            container,
            fresh: true,
        });
        if container == Container::Object && self.rules == Rules::Strict {
            self.keys.open();
        }
        Ok(())
    }

    /// Takes the comma before the next member, or the bracket that ends the container.
    fn another(&mut self, close: u8, expected: &'static str) -> Result<bool, ScanError> {
        let next = self.peek();
        let Some(frame) = self.open.last_mut() else {
            return Err(self.expected("a value"));
        };
        let fresh = std::mem::replace(&mut frame.fresh, false);
        match next {
            Some(byte) if byte == close => {
                self.at += 1;
                let left = self.open.pop();
                if left.is_some_and(|frame| frame.container == Container::Object)
                    && self.rules == Rules::Strict
                {
                    self.keys.close();
                }
                Ok(false)
            }
            Some(_) if fresh => Ok(true),
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            _ => Err(self.expected(expected)),
        }
    }

    fn scalar(&mut self, first: Option<u8>) -> Result<(), ScanError> {
        match first {
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => Err(self.expected("a value")),
        }
    }

    /// The inside of the string that begins here, and whether it holds an escape.
    fn string(&mut self) -> Result<(&'a str, bool), ScanError> {
        let (bytes, start) = (self.text.as_bytes(), self.at + 1);
        let plain = text::plain_end(bytes, start);
        let escaped = bytes.get(plain) != Some(&b'"');
        self.at = if escaped {
            self.escaped_end(plain)?
        } else {
            plain + 1
        };
        Ok((&self.text[start..self.at - 1], escaped))
    }

    /// The end of the string whose first escape, or fault, stands at `from`.
    #[cold]
    fn escaped_end(&mut self, from: usize) -> Result<usize, ScanError> {
        let found = text::string_end(self.text.as_bytes(), from)
            .map_err(|(at, expected)| ScanError::Syntax { at, expected })?;
        if found.lone_surrogate && self.rules == Rules::Strict {
            return Err(ScanError::LoneSurrogate { at: found.end });
        }
        Ok(found.end)
    }

    fn number(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        let (end, integer) =
            text::number_end(self.text.as_bytes(), start).map_err(|at| ScanError::Syntax {
                at,
                expected: "a digit",
            })?;
        self.at = end;
        let number = &self.text[start..end];
        if self.rules == Rules::Strict && !text::in_range(number, integer) {
            return Err(ScanError::NumberRange { at: start });
        }
        Ok(())
    }

    fn word(&mut self, word: &'static str) -> Result<(), ScanError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn take(&mut self, byte: u8, expected: &'static str) -> Result<(), ScanError> {
        if self.peek() != Some(byte) {
            return Err(self.expected(expected));
        }
        self.at += 1;
        Ok(())
    }

    fn expected(&self, expected: &'static str) -> ScanError {
        ScanError::Syntax {
            at: self.at,
            expected,
        }
    }
}

/// Checks a whole document of any shape.
pub fn check(bytes: &[u8], rules: Rules) -> Result<(), ScanError> {
    let mut scanner = Scanner::new(bytes, rules)?;
    scanner.value()?;
    scanner.end()
}

#[cfg(test)]
mod tests;
