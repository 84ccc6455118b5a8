//! How a request looks on the wire, and how a redirect is told.

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Request, Uri, Version,
    header::{
        ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING,
        UPGRADE,
    },
};
use http_body_util::Full;

use crate::{address::Target, policy::Server};

/// Header fields about one connection or one framing; they are ours to write.
const FRAMING: [HeaderName; 7] = [
    CONNECTION,
    CONTENT_LENGTH,
    EXPECT,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The request as it goes over the wire: origin-form (RFC 9112, section 3.2.1), our `Host`, our framing.
pub(super) fn prepare(server: &Server, request: Request<Bytes>) -> Request<Full<Bytes>> {
    let (mut head, body) = request.into_parts();
    head.uri = Uri::from(server.endpoint.path().clone());
    head.version = Version::HTTP_11;
    for name in &FRAMING {
        head.headers.remove(name);
    }
    head.headers
        .insert(HOST, server.endpoint.authority().clone());
    head.headers
        .insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    Request::from_parts(head, Full::new(body))
}

/// Scheme and host of a `Location`, and nothing else of it: paths and queries carry secrets.
pub(super) fn origin(location: Option<&HeaderValue>) -> String {
    let Some(location) = location else {
        return "no other place".to_owned();
    };
    let Ok(text) = location.to_str() else {
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
