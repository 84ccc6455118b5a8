//! Replacing parts of a message while every other byte stays.

use std::ops::Range;

/// `body` with the bytes of each range replaced; the ranges lie in order and do not overlap.
pub fn splice(body: &[u8], edits: &[(Range<usize>, &[u8])]) -> Vec<u8> {
    let added: usize = edits.iter().map(|(_, new)| new.len()).sum();
    let mut out = Vec::with_capacity(body.len() + added);
    let mut at = 0;
    for (range, new) in edits {
        out.extend_from_slice(&body[at..range.start]);
        out.extend_from_slice(new);
        at = range.end;
    }
    out.extend_from_slice(&body[at..]);
    out
}
