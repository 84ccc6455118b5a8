//! The head of a response (RFC 9112, sections 4 and 5).

use std::mem::MaybeUninit;

use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode, header::CONNECTION};
use httparse::{ParserConfig, Response, Status};
use memchr::memchr_iter;

use super::{Fault, Fields, Framing, MAX_HEAD};

/// The most header fields.
const MAX_FIELDS: usize = 100;

/// The head of a final response.
#[derive(Debug)]
pub(in crate::egress) struct Head {
    pub(in crate::egress) status: StatusCode,
    pub(in crate::egress) headers: Fields,
    /// Where its body ends.
    pub(in crate::egress) framing: Framing,
    /// Whether the server leaves the connection open behind it.
    pub(in crate::egress) persists: bool,
}

/// Looks for the head of a response.
#[derive(Debug, Default)]
pub(in crate::egress) struct Heads {
    /// Bytes of interim heads that were passed over.
    passed: usize,
    /// Bytes in which no end was found.
    searched: usize,
    /// Whether interim heads are given, too.
    all: bool,
}

impl Heads {
    /// Looks for interim heads, too.
    pub(in crate::egress) fn all() -> Self {
        Self {
            all: true,
            ..Self::default()
        }
    }

    /// Takes the head of the response to a `method` request from the front of `input`, behind interim ones
    /// (RFC 9110, section 15.2); `None` where it has not come whole.
    pub(in crate::egress) fn next(
        &mut self,
        method: &Method,
        input: &mut BytesMut,
    ) -> Result<Option<Head>, Fault> {
        loop {
            let end = end_of_head(input, self.searched)?;
            if self.passed + end.unwrap_or(input.len()) > MAX_HEAD {
                return Err(Fault::LongHead);
            }
            let Some(end) = end else {
                self.searched = input.len();
                return Ok(None);
            };
            let head = Head::read(method, input.split_to(end).freeze())?;
            let is_interim = head.status.is_informational();
            self.passed += end;
            self.searched = 0;
            if self.all || !is_interim || head.status == StatusCode::SWITCHING_PROTOCOLS {
                return Ok(Some(head));
            }
        }
    }
}

impl Head {
    fn read(method: &Method, bytes: Bytes) -> Result<Self, Fault> {
        let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let mut response = Response::new(&mut []);
        let parsed = ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            &bytes,
            &mut fields,
        )?;
        // All of it was read, or readers disagree about where the head ends.
        if parsed != Status::Complete(bytes.len()) {
            return Err(Fault::Ambiguous("an empty line within the head"));
        }
        let status = response.code.unwrap_or_default();
        let status = StatusCode::from_u16(status).map_err(|_| httparse::Error::Status)?;
        let mut headers = Fields::with_capacity(bytes.clone(), response.headers.len());
        for field in response.headers.iter() {
            headers.push(field.name.as_bytes(), field.value);
        }
        let (framing, is_clear) = Framing::of(method, status, &headers)?;
        let is_current = response.version == Some(1);
        if !is_current && matches!(framing, Framing::Chunked(_)) {
            return Err(Fault::Ambiguous("HTTP/1.0 has no chunks"));
        }
        let has_end = is_clear && !matches!(framing, Framing::Close);
        let persists = is_current && has_end && !says_close(&headers);
        Ok(Self {
            status,
            headers,
            framing,
            persists,
        })
    }
}

/// Where the head ends whose first `searched` bytes hold no end. The parser would take a bare LF for the end of a line,
/// which others do not.
fn end_of_head(input: &[u8], searched: usize) -> Result<Option<usize>, Fault> {
    for at in memchr_iter(b'\n', &input[searched..]).map(|at| searched + at) {
        let before = &input[..at];
        if !before.ends_with(b"\r") {
            return Err(Fault::Ambiguous("a line does not end in CRLF"));
        }
        if before.ends_with(b"\n\r") {
            return Ok(Some(at + 1));
        }
    }
    Ok(None)
}

fn says_close(headers: &Fields) -> bool {
    let values = headers.all(&CONNECTION);
    let mut options = values.flat_map(|value| value.split(|byte| *byte == b','));
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

#[cfg(test)]
mod tests;
