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

/// What has to go so that a member goes: the bytes from its key to the end of its value, and one comma beside them.
pub fn member_cut(body: &[u8], member: Range<usize>) -> Range<usize> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let after = &body[member.end..];
    let gap = after.iter().take_while(|byte| is_space(byte)).count();
    if after.get(gap) == Some(&b',') {
        return member.start..member.end + gap + 1;
    }
    let before = &body[..member.start];
    let gap = before
        .iter()
        .rev()
        .take_while(|byte| is_space(byte))
        .count();
    match before.len().checked_sub(gap + 1) {
        Some(at) if before[at] == b',' => at..member.end,
        _ => member,
    }
}
