//! What the fields of a head say to the proxy; the rest of them is for the target.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{
        CONNECTION, CONTENT_LENGTH, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
        TRANSFER_ENCODING, UPGRADE,
    },
};

use super::HeadError;
use crate::{
    address::Target,
    egress::{digits, is_own},
};

/// Fields that end at the proxy, whatever `Connection` says (RFC 9110, section 7.6.1, and what clients made up).
const HOP_BY_HOP: [HeaderName; 8] = [
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authentication-info"),
    HeaderName::from_static("http2-settings"),
    PROXY_AUTHENTICATE,
    TE,
    TRAILER,
    UPGRADE,
];

/// Where the body of a request ends (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// There is none.
    None,
    /// So many bytes.
    Length(u64),
    /// Behind its last chunk.
    Chunked,
}

/// The fields, sorted by whom they are for.
pub(super) struct Fields {
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    pub(super) authorization: Option<HeaderValue>,
    pub(super) websocket: bool,
    /// Whether `Host` names the target, or is absent where it may be.
    pub(super) agrees: bool,
    /// Whether `Connection` says `close`.
    pub(super) closes: bool,
}

impl Fields {
    /// Sorts the fields of a request; `is_current` is HTTP/1.1.
    pub(super) fn fold(
        mut headers: HeaderMap,
        method: &Method,
        target: &Target,
        is_current: bool,
    ) -> Result<Self, HeadError> {
        let agrees = match take(&mut headers, HOST, "Host")? {
            Some(host) => names(&host, target),
            // HTTP/1.0 need not send it (RFC 9112, section 3.2).
            None if is_current => return Err(HeadError::NoHost),
            None => true,
        };
        let body = body(&mut headers, method, is_current)?;
        let mut authorization = take(&mut headers, PROXY_AUTHORIZATION, "Proxy-Authorization")?;
        if let Some(value) = &mut authorization {
            value.set_sensitive(true);
        }
        let named = named_by_connection(&mut headers)?;
        let upgrades = is_current && named.contains(&UPGRADE) && is_websocket(&headers);
        // What is said to the proxy itself is still to be heard; it goes no further in any case.
        let ended = named
            .iter()
            .filter(|name| !is_own(name.as_str().as_bytes()));
        for name in HOP_BY_HOP.iter().chain(ended) {
            headers.remove(name);
        }
        Ok(Self {
            headers,
            body,
            authorization,
            agrees,
            websocket: upgrades && *method == Method::GET && body == Body::None,
            closes: named.contains(&HeaderName::from_static("close")),
        })
    }
}

fn names(host: &HeaderValue, target: &Target) -> bool {
    std::str::from_utf8(host.as_bytes()).is_ok_and(|host| target.is_named_by(host))
}

/// Takes out what frames the body.
fn body(headers: &mut HeaderMap, method: &Method, is_current: bool) -> Result<Body, HeadError> {
    let coding = take(headers, TRANSFER_ENCODING, "Transfer-Encoding")?;
    let length = take(headers, CONTENT_LENGTH, "Content-Length")?;
    let body = match (coding, length) {
        (Some(_), Some(_)) => {
            return Err(HeadError::Framing("it has a length and a transfer coding"));
        }
        (Some(_), None) if !is_current => {
            return Err(HeadError::Framing("HTTP/1.0 has no transfer codings"));
        }
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Body::Chunked,
        (Some(_), None) => return Err(HeadError::Framing("its transfer coding is not `chunked`")),
        (None, Some(length)) => {
            let length = digits(length.as_bytes());
            Body::Length(length.ok_or(HeadError::Framing("its length is no number"))?)
        }
        (None, None) => Body::None,
    };
    match body {
        Body::None | Body::Length(0) => Ok(body),
        _ if *method == Method::CONNECT => Err(HeadError::Framing("`CONNECT` has no body")),
        _ => Ok(body),
    }
}

/// Takes `Connection` out, and gives the options in it, each as the name of a field.
fn named_by_connection(headers: &mut HeaderMap) -> Result<Vec<HeaderName>, HeadError> {
    let values = headers.get_all(CONNECTION).iter();
    let options = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let options = options
        .map(<[u8]>::trim_ascii)
        .filter(|option| !option.is_empty());
    let named: Result<Vec<_>, _> = options.map(HeaderName::from_bytes).collect();
    let named = named.map_err(|_| HeadError::Connection)?;
    // These have been read already; a proxy before or behind this one might take them out.
    if [HOST, CONTENT_LENGTH, TRANSFER_ENCODING]
        .iter()
        .any(|name| named.contains(name))
    {
        return Err(HeadError::Connection);
    }
    headers.remove(CONNECTION);
    Ok(named)
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(UPGRADE).iter();
    let value = values.next().map(HeaderValue::as_bytes).unwrap_or_default();
    value.eq_ignore_ascii_case(b"websocket") && values.next().is_none()
}

/// Takes the one value of a field out.
fn take(
    headers: &mut HeaderMap,
    name: HeaderName,
    shown: &'static str,
) -> Result<Option<HeaderValue>, HeadError> {
    if headers.get_all(&name).iter().nth(1).is_some() {
        return Err(HeadError::Doubled(shown));
    }
    Ok(headers.remove(name))
}
