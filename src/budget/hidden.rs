//! Characters that nobody sees and models read (requirements, E5): found, made visible, or removed.
//!
//! Whatever is not ASCII, and every escape, stands inside a string of JSON text, so a text is looked at as a whole, without
//! a parser. What is hidden is written as `\u{202E}`: visible to people and models, and without effect.

mod class;

use std::{fmt::Write as _, ops::Range};

use super::written::{begins_escape, char_at};

/// Characters of one run that are written out; of longer runs, only their number is told beside them.
const RUN: usize = 16;

/// Bytes that are asked about together.
const BLOCK: usize = 512;

/// The first hidden character from `from` on, which lies between two characters.
pub fn find(text: &str, from: usize) -> Option<Range<usize>> {
    let mut at = from;
    loop {
        at = candidate(text.as_bytes(), at)?;
        if let Some(end) = hidden_at(text, at) {
            return Some(at..end);
        }
        at += 1;
    }
}

/// Whether `text`, JSON in UTF-8, may hide anything: where it says no, it need not be looked at as text.
pub fn may_be_in(text: &[u8]) -> bool {
    candidate(text, 0).is_some()
}

/// `text` with what is hidden made visible; `None` where that is longer than `max`.
pub fn reveal(text: &str, max: usize) -> Option<String> {
    let mut out = String::with_capacity(text.len().min(max));
    let mut at = 0;
    while let Some(found) = find(text, at) {
        out.push_str(&text[at..found.start]);
        let mut next = found.start;
        let mut length = 0;
        while let Some(end) = hidden_at(text, next) {
            if length < RUN {
                let code = char_at(text, next).map_or(0, |(found, _)| u32::from(found));
                let _infallible = write!(out, "\\\\u{{{code:04X}}}");
            }
            (length, next) = (length + 1, end);
        }
        if length > RUN {
            let more = length - RUN;
            let _infallible = write!(out, "[{more} more hidden characters]");
        }
        if out.len() > max {
            return None;
        }
        at = next;
    }
    out.push_str(&text[at..]);
    (out.len() <= max).then_some(out)
}

/// `text` without what is hidden.
pub fn remove(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = find(text, at) {
        out.push_str(&text[at..found.start]);
        at = found.end;
    }
    out.push_str(&text[at..]);
    out
}

/// The end of the character at `at` where it is hidden.
fn hidden_at(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.get(at) == Some(&b'\\') && !begins_escape(bytes, at) {
        return None;
    }
    let (found, end) = char_at(text, at)?;
    class::is_hidden(text, found, at..end).then_some(end)
}

/// The first byte from `from` on that may begin a hidden character. Nearly all texts have none, and nearly nothing is
/// spent on them: whole blocks are asked at once.
fn candidate(bytes: &[u8], from: usize) -> Option<usize> {
    let next = |place: usize| bytes.get(place + 1).copied().unwrap_or_default();
    let mut at = from;
    while at < bytes.len() {
        let end = bytes.len().min(at + BLOCK);
        if may_begin(&bytes[at..end], &bytes[at + 1..bytes.len().min(end + 1)]) {
            let place = (at..end).find(|place| {
                ascii(bytes[*place], next(*place)) || beyond(bytes[*place], next(*place))
            });
            if place.is_some() {
                return place;
            }
        }
        at = end;
    }
    None
}

/// Whether a byte of `block` may begin a hidden character; `next` is the same, one byte on. Without a branch inside, where
/// it has to look at single bytes.
fn may_begin(block: &[u8], next: &[u8]) -> bool {
    let is_ascii = block.is_ascii();
    if is_ascii && memchr::memchr2(0x7f, b'\\', block).is_none() {
        return false;
    }
    let pairs = block.iter().zip(next);
    let hit = if is_ascii {
        pairs.fold(false, |hit, (one, next)| hit | ascii(*one, *next))
    } else {
        pairs.fold(false, |hit, (one, next)| {
            hit | ascii(*one, *next) | beyond(*one, *next)
        })
    };
    // A last byte without a next one can only be a control character.
    hit || block.last() == Some(&0x7f)
}

/// Whether two bytes may begin the escape of a hidden character, or are DEL. Control characters below 0x20 only stand
/// between tokens.
fn ascii(one: u8, next: u8) -> bool {
    (one == 0x7f) | ((one == b'\\') & ((next == b'u') | (next == b'b') | (next == b'f')))
}

/// Whether two bytes may begin a hidden character in UTF-8.
fn beyond(one: u8, next: u8) -> bool {
    ((one == 0xC2) & ((next < 0xA0) | (next == 0xAD)))
        | ((one == 0xCD) & (next == 0x8F))
        | ((one == 0xD8) & (next == 0x9C))
        | ((one == 0xE1) & ((next == 0x85) | (next == 0x9E) | (next == 0xA0)))
        | ((one == 0xE2) & ((next == 0x80) | (next == 0x81)))
        | ((one == 0xE3) & (next == 0x85))
        | ((one == 0xEF) & ((next == 0xB8) | (next == 0xBB) | (next == 0xBE) | (next == 0xBF)))
        | ((one == 0xF0) & (next == 0x9D))
        | (one == 0xF3)
}

#[cfg(test)]
mod tests;
