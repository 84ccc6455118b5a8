//! How a request looks on the wire, and how a redirect is told.

use std::borrow::Cow;

use bytes::Bytes;
use http::Method;

use super::FieldLines;
use crate::{address::Target, egress::exchange::Wire, policy::Endpoint};

/// Room for what stands in every head.
const ROOM: usize = 96;
/// A body up to so many bytes leaves in one write with its head.
const SMALL: usize = 16 * 1024;

/// The request as it goes over the wire: origin-form (RFC 9112, section 3.2.1), our `Host`, our framing.
pub(in crate::egress) fn wire(
    endpoint: &Endpoint,
    method: Method,
    fields: &FieldLines,
    body: Bytes,
) -> Wire {
    let joined = body.len() <= SMALL;
    let (path, authority) = (endpoint.path().as_str(), endpoint.authority());
    let room = ROOM + path.len() + authority.len() + fields.as_bytes().len();
    let mut out = Vec::with_capacity(room + if joined { body.len() } else { 0 });
    let mut put = |parts: &[&[u8]]| parts.iter().for_each(|part| out.extend_from_slice(part));
    put(&[
        method.as_str().as_bytes(),
        b" ",
        path.as_bytes(),
        b" HTTP/1.1\r\nhost: ",
        authority.as_bytes(),
        b"\r\naccept-encoding: identity\r\n",
        fields.as_bytes(),
    ]);
    // An empty body is said to be one where the method suggests a body (RFC 9110, section 8.6).
    if !body.is_empty() || matches!(method, Method::POST | Method::PUT | Method::PATCH) {
        let mut length = itoa::Buffer::new();
        put(&[
            b"content-length: ",
            length.format(body.len()).as_bytes(),
            b"\r\n",
        ]);
    }
    put(&[b"\r\n"]);
    if joined {
        put(&[&body]);
    }
    Wire {
        method,
        head: out.into(),
        body: if joined { Bytes::new() } else { body },
    }
}

/// Scheme and host of a `Location`, and nothing else of it: paths and queries carry secrets.
pub(super) fn origin(location: Option<&[u8]>) -> String {
    let Some(location) = location else {
        return "no other place".to_owned();
    };
    let text = std::str::from_utf8(location).ok();
    let Some(text) = text.filter(|text| text.is_ascii()) else {
        return "an unreadable place".to_owned();
    };
    if text.starts_with('/') && !text.starts_with("//") {
        return "another path on itself".to_owned();
    }
    match Target::from_wire(text) {
        Ok(target) => format!("{}://{}", target.scheme().as_str(), target.host()),
        Err(_) => "a place that is no valid URL".to_owned(),
    }
}

/// Whether a `Location` is the path of `endpoint` on its host, but for the scheme, the port, or a slash at the end.
pub(super) fn has_moved(endpoint: &Endpoint, location: Option<&[u8]>) -> bool {
    let Some(text) = location.and_then(|location| std::str::from_utf8(location).ok()) else {
        return false;
    };
    let path = if text.starts_with('/') && !text.starts_with("//") {
        Cow::Borrowed(text)
    } else {
        match Target::from_wire_with_path(text) {
            Ok((target, path)) if target.host() == endpoint.target().host() => path,
            _ => return false,
        }
    };
    unslashed(&path) == unslashed(endpoint.path().as_str())
}

/// A path without a slash at its end, and its query.
fn unslashed(path: &str) -> (&str, &str) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    (path.strip_suffix('/').unwrap_or(path), query)
}
