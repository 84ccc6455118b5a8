//! The head of an answer as the client gets it: the fields as they came and in their order, without those that end here.

use bytes::{BufMut as _, BytesMut};
use http::header::CONNECTION;

use crate::egress::{self, Fields, VIA, is_own};

/// Fields that end at the proxy whatever `Connection` says, and those that it writes anew (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [&[u8]; 12] = [
    b"connection",
    b"content-length",
    b"http2-settings",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authentication-info",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
];

/// How an answer is framed for its client.
pub(super) struct Shape {
    /// What `Content-Length` says.
    pub(super) length: Option<u64>,
    pub(super) chunked: bool,
    /// Whether the connection is closed behind it.
    pub(super) closes: bool,
    /// Whether it is a WebSocket from here on.
    pub(super) websocket: bool,
}

/// Writes the head of an answer.
pub(super) fn write(out: &mut BytesMut, head: &egress::Head, shape: &Shape) {
    let status = head.status;
    put(out, &[b"HTTP/1.1 ", status.as_str().as_bytes(), b" "]);
    let reason = status.canonical_reason().unwrap_or_default();
    put(out, &[reason.as_bytes(), b"\r\n"]);
    for (name, value) in head.headers.iter() {
        if !ends_here(&head.headers, name) {
            put(out, &[name, b": ", value, b"\r\n"]);
        }
    }
    put(out, &[b"via: ", VIA.as_bytes(), b"\r\n"]);
    if let Some(length) = shape.length {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(length).as_bytes();
        put(out, &[b"content-length: ", digits, b"\r\n"]);
    }
    for (is_so, field) in [
        (shape.chunked, &b"transfer-encoding: chunked\r\n"[..]),
        (shape.closes, b"connection: close\r\n"),
        (
            shape.websocket,
            b"connection: upgrade\r\nupgrade: websocket\r\n",
        ),
    ] {
        if is_so {
            out.put_slice(field);
        }
    }
    out.put_slice(b"\r\n");
}

/// Whether a field is not for the client.
fn ends_here(headers: &Fields, name: &[u8]) -> bool {
    let mut listed = HOP_BY_HOP.iter();
    listed.any(|listed| listed.eq_ignore_ascii_case(name))
        || is_own(name)
        || is_named(headers, name)
}

/// Whether `Connection` names the field.
fn is_named(headers: &Fields, name: &[u8]) -> bool {
    let values = headers.all(&CONNECTION);
    let mut options = values.flat_map(|value| value.split(|byte| *byte == b','));
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(name))
}

fn put(out: &mut BytesMut, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.put_slice(part));
}
