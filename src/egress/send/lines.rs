//! The header fields of a request, as they go over the wire.

use http::{
    HeaderName, HeaderValue,
    header::{
        ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING,
        UPGRADE,
    },
};

/// Header fields about the connection, the framing or the place; they are ours to write.
const OURS: [HeaderName; 9] = [
    ACCEPT_ENCODING,
    CONNECTION,
    CONTENT_LENGTH,
    EXPECT,
    HOST,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
/// Room for the fields of most requests.
const ROOM: usize = 512;

/// Field lines (RFC 9112, section 5), each ended by CRLF. They are written as they are added: nobody looks one up, and an
/// index of them would cost more than the rest of the head. It shows nothing of itself: values may be secrets.
#[derive(Clone)]
pub struct FieldLines(Vec<u8>);

impl FieldLines {
    /// None yet.
    pub fn new() -> Self {
        Self(Vec::with_capacity(ROOM))
    }

    /// Adds a field behind the others; one about the connection, the framing or the place is left out.
    pub fn add(&mut self, name: &HeaderName, value: &HeaderValue) {
        if !OURS.contains(name) {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                self.0.extend_from_slice(part);
            }
        }
    }

    /// The lines.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Default for FieldLines {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_the_callers_to_say_is_left_out() {
        let mut lines = FieldLines::new();
        let value = HeaderValue::from_static("x");
        for name in OURS {
            lines.add(&name, &value);
        }
        lines.add(&HeaderName::from_static("mcp-name"), &value);
        lines.add(&HeaderName::from_static("accept"), &value);
        assert_eq!(lines.as_bytes(), b"mcp-name: x\r\naccept: x\r\n");
    }
}
