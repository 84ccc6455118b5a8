//! How a forwarded request looks on the wire.

use std::fmt::Write as _;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::header::EXPECT;

use super::{Request, Sent, VIA, is_own};
use crate::{address::Target, egress::exchange::Wire};

/// Room for a head.
const ROOM: usize = 1024;
/// A piece of a body up to so many bytes leaves in one write with the head.
const SMALL: usize = 16 * 1024;

/// Head and first piece: origin-form (RFC 9112, section 3.2.1), the target's own `Host`, our framing.
pub(super) fn wire(target: &Target, request: &Request<'_>) -> Wire {
    let mut out = BytesMut::with_capacity(ROOM);
    put(
        &mut out,
        &[
            request.method.as_str().as_bytes(),
            b" ",
            request.path.as_bytes(),
        ],
    );
    put(&mut out, &[b" HTTP/1.1\r\nhost: "]);
    write_authority(&mut out, target);
    let no_body = request.framing == Sent::Nothing;
    for (name, value) in request.headers {
        // Nothing would follow the 100 that it asks for.
        let is_idle = no_body && *name == EXPECT;
        if !is_idle && !is_own(name.as_str().as_bytes()) {
            put(
                &mut out,
                &[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"],
            );
        }
    }
    put(&mut out, &[b"via: ", VIA.as_bytes(), b"\r\n"]);
    match request.framing {
        Sent::Nothing => {}
        Sent::Length(length) => {
            let mut digits = itoa::Buffer::new();
            put(
                &mut out,
                &[
                    b"content-length: ",
                    digits.format(length).as_bytes(),
                    b"\r\n",
                ],
            );
        }
        Sent::Chunked => put(&mut out, &[b"transfer-encoding: chunked\r\n"]),
    }
    if request.websocket {
        put(
            &mut out,
            &[b"connection: upgrade\r\nupgrade: websocket\r\n"],
        );
    }
    put(&mut out, &[b"\r\n"]);
    let body = match request.framing {
        Sent::Chunked => chunk(&request.first, request.whole),
        Sent::Nothing | Sent::Length(_) => request.first.clone(),
    };
    let joined = body.len() <= SMALL;
    if joined {
        put(&mut out, &[&body]);
    }
    Wire {
        method: request.method.clone(),
        head: out.freeze(),
        body: if joined { Bytes::new() } else { body },
    }
}

/// A piece as a chunk, and the last chunk behind it where it is the last.
pub(super) fn chunk(piece: &[u8], is_last: bool) -> Bytes {
    let mut out = BytesMut::with_capacity(piece.len() + 32);
    if !piece.is_empty() {
        write!(out, "{:x}\r\n", piece.len()).expect("a buffer takes all that is written to it");
        put(&mut out, &[piece, b"\r\n"]);
    }
    if is_last {
        put(&mut out, &[b"0\r\n\r\n"]);
    }
    out.freeze()
}

fn write_authority(out: &mut BytesMut, target: &Target) {
    let written = match target.port() {
        port if port == target.scheme().default_port() => write!(out, "{}\r\n", target.host()),
        port => write!(out, "{}:{port}\r\n", target.host()),
    };
    written.expect("a buffer takes all that is written to it");
}

fn put(out: &mut BytesMut, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.put_slice(part));
}
