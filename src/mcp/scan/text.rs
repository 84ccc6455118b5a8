//! Strings and numbers: where they end, and what they stand for.

use std::borrow::Cow;

/// The end of a string.
pub(super) struct StringEnd {
    /// Just after the closing quote.
    pub(super) end: usize,
    /// Whether an escape names half a surrogate pair.
    pub(super) lone_surrogate: bool,
}

/// Finds the end of the string of which `from` is inside, between two characters of it; an error is a position and what
/// may stand there.
#[inline(never)]
pub(super) fn string_end(bytes: &[u8], from: usize) -> Result<StringEnd, (usize, &'static str)> {
    let mut at = from;
    let mut lone_surrogate = false;
    // Whether the escape that ends at `at` is the first half of a pair.
    let mut high = false;
    loop {
        let next = plain_end(bytes, at);
        lone_surrogate |= high && next != at;
        high &= next == at;
        match bytes.get(next) {
            Some(b'"') => {
                return Ok(StringEnd {
                    end: next + 1,
                    lone_surrogate: lone_surrogate | high,
                });
            }
            Some(b'\\') => {
                let (unit, end) = escape(bytes, next).ok_or((next, "a valid escape"))?;
                lone_surrogate |= high != (0xDC00..0xE000).contains(&unit);
                high = (0xD800..0xDC00).contains(&unit);
                at = end;
            }
            Some(_) => return Err((next, "an escape for the control character")),
            None => return Err((next, "the closing quote")),
        }
    }
}

/// The first byte from `start` on that is a quote, a backslash or a control character, or the end.
///
/// Most strings are short: their first 32 bytes are looked at in words. Only then do vector instructions, which cost more
/// to begin with, take over.
#[inline]
pub(in crate::mcp) fn plain_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while at < start + SHORT
        && let Some(word) = bytes.get(at..at + 8).and_then(<[u8]>::first_chunk)
    {
        if let Some(found) = stop_in_word(u64::from_le_bytes(*word)) {
            return at + found;
        }
        at += 8;
    }
    far_plain_end(bytes, at)
}

/// Bytes that are looked at in words.
const SHORT: usize = 32;

/// The same in the last bytes, or for a long run. A quote or a backslash ends nearly every one; whether a control
/// character comes before it is asked of whole blocks, and of single bytes only where one does.
#[inline(never)]
fn far_plain_end(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[start..];
    if rest.len() < 8 {
        let plain = rest.iter().take_while(|byte| !stops(**byte));
        return start + plain.count();
    }
    let run = &rest[..memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len())];
    let blocks = run.chunks(BLOCK).take_while(|block| !has_control(block));
    let clean = (blocks.count() * BLOCK).min(run.len());
    let control = run[clean..].iter().position(|byte| *byte < 0x20);
    start + control.map_or(run.len(), |at| clean + at)
}

/// Bytes that are asked about together.
const BLOCK: usize = 1024;

/// Without a branch inside, this compiles to vector instructions.
fn has_control(block: &[u8]) -> bool {
    block.iter().fold(u8::MAX, |least, byte| least.min(*byte)) < 0x20
}

/// Whether it ends a run of plain text.
fn stops(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// The first byte of a little-endian word that [`stops`]. A byte below n borrows into its own top bit, which bytes
/// from 0x80 up must not count for; borrows spoil only bytes above the first hit.
fn stop_in_word(word: u64) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    let found = (control | quote | backslash) & TOPS;
    (found != 0).then(|| found.trailing_zeros() as usize / 8)
}

/// The UTF-16 unit that the escape at `at` stands for, and its end.
fn escape(bytes: &[u8], at: usize) -> Option<(u16, usize)> {
    let unit = match bytes.get(at + 1)? {
        b'"' => b'"',
        b'\\' => b'\\',
        b'/' => b'/',
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => {
            let digits = bytes.get(at + 2..at + 6)?;
            let unit = digits.iter().try_fold(0u32, |unit, digit| {
                char::from(*digit)
                    .to_digit(16)
                    .map(|digit| unit << 4 | digit)
            })?;
            return Some((u16::try_from(unit).ok()?, at + 6));
        }
        _ => return None,
    };
    Some((u16::from(unit), at + 2))
}

/// Decodes the inside of a string that was scanned; lone surrogates become U+FFFD.
pub(in crate::mcp) fn unescape(inner: &str) -> Cow<'_, str> {
    let bytes = inner.as_bytes();
    // As in [`plain_end`]: most are short.
    let first = match bytes.len() {
        ..SHORT => bytes.iter().position(|byte| *byte == b'\\'),
        _ => memchr::memchr(b'\\', bytes),
    };
    let Some(first) = first else {
        return Cow::Borrowed(inner);
    };
    let mut out = String::with_capacity(inner.len());
    let mut units = Vec::new();
    let mut at = 0;
    let mut next = Some(first);
    while let Some(backslash) = next {
        out.push_str(&inner[at..backslash]);
        at = backslash;
        while let Some((unit, end)) = run_escape(inner.as_bytes(), at) {
            units.push(unit);
            at = end;
        }
        out.extend(
            char::decode_utf16(units.drain(..))
                .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)),
        );
        next = memchr::memchr(b'\\', &inner.as_bytes()[at..]).map(|found| at + found);
    }
    out.push_str(&inner[at..]);
    Cow::Owned(out)
}

fn run_escape(bytes: &[u8], at: usize) -> Option<(u16, usize)> {
    if bytes.get(at) == Some(&b'\\') {
        escape(bytes, at)
    } else {
        None
    }
}

/// The end of the number at `start`, and whether it is an integer; an error is where a digit is missing.
pub(super) fn number_end(bytes: &[u8], start: usize) -> Result<(usize, bool), usize> {
    let mut at = start;
    let mut integer = true;
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    at = if bytes.get(at) == Some(&b'0') {
        at + 1
    } else {
        digits(bytes, at)?
    };
    if bytes.get(at) == Some(&b'.') {
        integer = false;
        at = digits(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        integer = false;
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        at = digits(bytes, at)?;
    }
    Ok((at, integer))
}

fn digits(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let count = bytes[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if count == 0 { Err(at) } else { Ok(at + count) }
}

/// Whether every parser can hold the number: an integer in i64 or u64, anything else finite as f64.
pub(super) fn in_range(number: &str, integer: bool) -> bool {
    if integer {
        number.parse::<u64>().is_ok() || number.parse::<i64>().is_ok()
    } else {
        number.parse::<f64>().is_ok_and(f64::is_finite)
    }
}
