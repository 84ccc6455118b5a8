//! The head of a request to a forward proxy (RFC 9112, sections 2 to 6; RFC 9110, sections 7 and 9.3.6), read strictly:
//! what two readers could read differently is refused.

mod error;
mod fields;
mod lines;

use std::{borrow::Cow, fmt, mem::MaybeUninit};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use httparse::{Request, Status};

pub use error::HeadError;
pub use fields::Body;
use fields::Fields;

use crate::address::{Scheme, Target};

/// The most bytes of a head.
const MAX_HEAD: usize = 64 * 1024;
/// The most bytes of a request line.
const MAX_LINE: usize = 16 * 1024;
/// The most header fields.
const MAX_FIELDS: usize = 100;

/// How a TLS client begins, for which a proxy URL with `https://` is enough. It sends no line that would end.
const TLS_HANDSHAKE: u8 = 22;

/// The head of a request, as far as it concerns whoever it is forwarded to.
pub struct Head {
    /// The method, never TRACE.
    pub method: Method,
    /// Where the request goes: `https` for CONNECT, else `http`.
    pub target: Target,
    /// Path and query for the request line towards the target: begins with `/`, or is the `*` of OPTIONS; `None` for
    /// CONNECT.
    pub path: Option<String>,
    /// The fields that are forwarded. Without `Host` (the target's authority takes its place), without those that frame
    /// the body, and without the hop-by-hop ones.
    pub headers: HeaderMap,
    /// Where the body ends.
    pub body: Body,
    /// The value of `Proxy-Authorization`.
    pub authorization: Option<HeaderValue>,
    /// Whether it asks for a WebSocket (RFC 6455, section 4.1). Any other `Upgrade` is folded away.
    pub websocket: bool,
    /// Whether another request may follow on the connection.
    pub persists: bool,
    /// Whether the client speaks HTTP/1.1, and with it chunks and interim responses.
    pub is_current: bool,
    /// Whether `Host` names the target.
    agrees: bool,
}

/// Looks for the head of a request in bytes that arrive piece by piece; the result does not depend on the pieces.
#[derive(Debug, Default)]
pub struct Heads {
    /// Bytes in which no end was found.
    searched: usize,
    /// Lines that ended in them.
    lines: usize,
}

impl Heads {
    /// Takes the head of the next request from the front of `input`; `None` where it has not come whole. What follows it
    /// stays.
    ///
    /// # Errors
    ///
    /// [`HeadError`]; the connection is of no use then.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Head>, HeadError> {
        let Some(end) = self.end(input)? else {
            return Ok(None);
        };
        *self = Self::default();
        Head::read(input.split_to(end).freeze()).map(Some)
    }

    /// Where the head ends. The parser would take a bare LF for the end of a line, which others do not.
    fn end(&mut self, input: &[u8]) -> Result<Option<usize>, HeadError> {
        let input = &input[..input.len().min(MAX_HEAD)];
        if input.first() == Some(&TLS_HANDSHAKE) {
            return Err(HeadError::Tls);
        }
        for at in memchr::memchr_iter(b'\n', &input[self.searched..]) {
            let before = &input[..self.searched + at];
            if self.lines == 0 && before.len() >= MAX_LINE {
                return Err(HeadError::LongLine);
            }
            if !before.ends_with(b"\r") {
                return Err(HeadError::LineEnd);
            }
            if before.len() == 1 {
                return Err(HeadError::EmptyLine);
            }
            if before.ends_with(b"\n\r") {
                return Ok(Some(before.len() + 1));
            }
            self.lines += 1;
            if self.lines > 1 + MAX_FIELDS {
                return Err(HeadError::ManyFields);
            }
        }
        self.searched = input.len();
        match input.len() {
            MAX_HEAD => Err(HeadError::LongHead),
            MAX_LINE.. if self.lines == 0 => Err(HeadError::LongLine),
            _ => Ok(None),
        }
    }
}

impl Head {
    fn read(bytes: Bytes) -> Result<Self, HeadError> {
        lines::check(&bytes)?;
        let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let mut request = Request::new(&mut []);
        let parsed = request.parse_with_uninit_headers(&bytes, &mut fields)?;
        // All of it was read, or readers disagree about where the head ends.
        if parsed != Status::Complete(bytes.len()) {
            return Err(HeadError::EmptyLine);
        }
        let method = Method::from_bytes(request.method.unwrap_or_default().as_bytes())
            .map_err(|_| httparse::Error::Token)?;
        let (target, path) = destination(&method, request.path.unwrap_or_default())?;
        let mut headers = HeaderMap::with_capacity(request.headers.len());
        for field in request.headers.iter() {
            let name = HeaderName::from_bytes(field.name.as_bytes());
            let value = HeaderValue::from_maybe_shared(bytes.slice_ref(field.value));
            headers.append(
                name.map_err(|_| httparse::Error::HeaderName)?,
                value.map_err(|_| httparse::Error::HeaderValue)?,
            );
        }
        let is_current = request.version == Some(1);
        let fields = Fields::fold(headers, &method, &target, is_current)?;
        Ok(Self {
            method,
            target,
            path,
            headers: fields.headers,
            body: fields.body,
            authorization: fields.authorization,
            websocket: fields.websocket,
            // What a client says early to a WebSocket that it does not get is no request.
            persists: is_current && !fields.closes && !fields.websocket,
            is_current,
            agrees: fields.agrees,
        })
    }

    /// Checks that `Host` names the target. The target counts (RFC 9112, section 3.2.2), so the verdict on it comes first:
    /// a request that fails here has an allowed one.
    ///
    /// # Errors
    ///
    /// [`HeadError::HostMismatch`].
    pub fn check_host(&self) -> Result<(), HeadError> {
        let agrees = self.agrees.then_some(());
        agrees.ok_or_else(|| HeadError::HostMismatch(self.target.authority()))
    }
}

/// Neither a path nor a value: both may hold secrets.
impl fmt::Debug for Head {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Head")
            .field("method", &self.method)
            .field("target", &self.target)
            .field("body", &self.body)
            .field("websocket", &self.websocket)
            .field("persists", &self.persists)
            .finish_non_exhaustive()
    }
}

/// Where a request goes, and with which path (RFC 9112, section 3.2).
fn destination(method: &Method, text: &str) -> Result<(Target, Option<String>), HeadError> {
    match *method {
        Method::CONNECT => return Ok((Target::from_authority(text)?, None)),
        // It would show the client what the proxy adds (RFC 9110, section 9.3.8).
        Method::TRACE => return Err(HeadError::Method),
        _ => {}
    }
    if text.starts_with('/') || text == "*" {
        return Err(HeadError::OriginForm);
    }
    // Some WebSocket clients write the scheme that they were given (RFC 6455, section 3) where a proxy expects http.
    let text = match text.strip_prefix("ws://") {
        Some(rest) => Cow::Owned(format!("http://{rest}")),
        None => Cow::Borrowed(text),
    };
    let (target, path) = Target::from_wire_with_path(&text)?;
    if target.scheme() == Scheme::Https {
        return Err(HeadError::Https(target.host().clone()));
    }
    // The last proxy writes the target that asks about the whole server (RFC 9112, section 3.2.4).
    let whole = *method == Method::OPTIONS && !text["http://".len()..].contains(['/', '?']);
    let path = if whole { "*".into() } else { path };
    Ok((target, Some(path.into_owned())))
}

#[cfg(test)]
mod tests;
