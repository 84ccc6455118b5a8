//! One form for each JSON value, so that equal values have equal digests however they were written.
//!
//! White space is gone, the keys of an object stand in the order of their UTF-8 bytes, and strings escape only what they
//! must: the quote, the backslash, and control characters (`\b`, `\t`, `\n`, `\f`, `\r`, else `\u00` and two lower-case
//! digits). Numbers stay as they were spelled, since `1` and `1.0` are not alike for every reader. What readers disagree
//! about, [`Rules::Strict`] refuses. Digests are kept: this form never changes.

use std::{borrow::Cow, ops::Range};

use sha2::{Digest, Sha256};

use super::scan::{Rules, ScanError, Scanner};

/// The canonical form of a JSON text; never longer than the text.
///
/// # Errors
///
/// What [`Rules::Strict`] refuses: duplicate keys, lone surrogates, numbers out of range, more than 64 levels.
pub fn canonical(text: &[u8]) -> Result<Vec<u8>, ScanError> {
    let mut scanner = Scanner::new(text, Rules::Strict)?;
    let mut out = Vec::with_capacity(text.len());
    value(&mut scanner, &mut out)?;
    scanner.end()?;
    Ok(out)
}

/// The SHA-256 of the canonical form.
///
/// # Errors
///
/// As [`canonical`].
pub fn digest(text: &[u8]) -> Result<[u8; 32], ScanError> {
    Ok(Sha256::digest(canonical(text)?).into())
}

/// Goes as deep as the scanner lets it.
fn value(scanner: &mut Scanner<'_>, out: &mut Vec<u8>) -> Result<(), ScanError> {
    match scanner.peek() {
        Some(b'{') => object(scanner, out),
        Some(b'[') => array(scanner, out),
        _ => {
            let scalar = scanner.value()?;
            match scalar.string() {
                Some(text) => string(&text, out),
                None => out.extend_from_slice(scalar.as_str().as_bytes()),
            }
            Ok(())
        }
    }
}

fn array(scanner: &mut Scanner<'_>, out: &mut Vec<u8>) -> Result<(), ScanError> {
    scanner.enter_array()?;
    out.push(b'[');
    let first = out.len();
    while scanner.element()? {
        if out.len() > first {
            out.push(b',');
        }
        value(scanner, out)?;
    }
    out.push(b']');
    Ok(())
}

fn object(scanner: &mut Scanner<'_>, out: &mut Vec<u8>) -> Result<(), ScanError> {
    scanner.enter_object()?;
    out.push(b'{');
    let first = out.len();
    let mut members = Vec::new();
    while let Some(key) = scanner.key()? {
        if out.len() > first {
            out.push(b',');
        }
        let start = out.len();
        string(&key, out);
        out.push(b':');
        value(scanner, out)?;
        let text = start..out.len();
        members.push(Member { key, text });
    }
    if !members.is_sorted_by(|one, next| one.key <= next.key) {
        sort(&mut members, &mut out[first..], first);
    }
    out.push(b'}');
    Ok(())
}

/// A member of an object that is being written.
struct Member<'a> {
    key: Cow<'a, str>,
    /// Where it was written, key and value.
    text: Range<usize>,
}

/// Brings `written`, the members of one object from position `first` on, into the order of their keys.
fn sort(members: &mut [Member<'_>], written: &mut [u8], first: usize) {
    members.sort_unstable_by(|one, other| one.key.cmp(&other.key));
    let mut sorted = Vec::with_capacity(written.len());
    for Member { text, .. } in members {
        if !sorted.is_empty() {
            sorted.push(b',');
        }
        sorted.extend_from_slice(&written[text.start - first..text.end - first]);
    }
    written.copy_from_slice(&sorted);
}

fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| escaped(*byte)) {
        out.extend_from_slice(&rest[..at]);
        escape(rest[at], out);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        8 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        12 => b'f',
        b'\r' => b'r',
        _ => {
            let low = b"0123456789abcdef"[usize::from(byte & 15)];
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', b'0' + (byte >> 4), low]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests;
