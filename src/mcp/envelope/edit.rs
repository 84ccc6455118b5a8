//! Replacing parts of a message while every other byte stays.

use std::ops::Range;

use bytes::Bytes;

use super::Envelope;

impl Envelope<'_> {
    /// The message with another id, without copying the rest: the pieces follow one another. `body` is what was
    /// read; `None` if the message has no id.
    pub fn with_id(&self, body: &Bytes, id: Bytes) -> Option<[Bytes; 3]> {
        let place = self.id?.part().range();
        Some([body.slice(..place.start), id, body.slice(place.end..)])
    }
}

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
