//! Events as Tollgate writes them.

use bytes::{BufMut, Bytes, BytesMut};

/// A comment, which keeps an idle stream open.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// Appends a `message` event with the data that `pieces` make together.
///
/// Line feeds in the data come back from a parser as they were; a carriage return, which JSON has only as white
/// space, comes back as a line feed.
pub fn encode(out: &mut BytesMut, pieces: &[impl AsRef<[u8]>]) {
    const HEAD: &[u8] = b"event: message\ndata: ";
    out.reserve(
        HEAD.len()
            + pieces
                .iter()
                .map(|piece| piece.as_ref().len())
                .sum::<usize>()
            + 2,
    );
    out.put_slice(HEAD);
    let mut after_return = false;
    for piece in pieces {
        let mut rest = piece.as_ref();
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut after_return) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = memchr::memchr2(b'\r', b'\n', rest);
            out.put_slice(&rest[..end.unwrap_or(rest.len())]);
            let Some(end) = end else { break };
            out.put_slice(b"\ndata: ");
            after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
        }
    }
    out.put_slice(b"\n\n");
}

/// Appends the `id` of the event that follows, made of `pieces`, none of which has a line break.
pub fn encode_id(out: &mut BytesMut, pieces: &[&[u8]]) {
    out.put_slice(b"id: ");
    for piece in pieces {
        out.put_slice(piece);
    }
    out.put_u8(b'\n');
}

/// Appends `retry`, in milliseconds.
pub fn encode_retry(out: &mut BytesMut, retry: u128) {
    let mut buffer = itoa::Buffer::new();
    out.put_slice(b"retry: ");
    out.put_slice(buffer.format(retry).as_bytes());
    out.put_u8(b'\n');
}

/// Appends an event without data, whose id names a place to go on from (MCP 2025-11-25, transports).
pub fn encode_nothing(out: &mut BytesMut) {
    out.put_slice(b"data: \n\n");
}

/// One `message` event with this data.
pub fn frame(data: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    encode(&mut out, &[data]);
    out.freeze()
}
