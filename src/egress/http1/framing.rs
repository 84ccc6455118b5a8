//! Where a response ends (RFC 9112, section 6.3).

use bytes::{Bytes, BytesMut};
use http::{
    Method, StatusCode,
    header::{CONTENT_LENGTH, TRANSFER_ENCODING},
};

use super::{Fault, Fields, chunked::Chunked};

/// What ends a body, and how far it was read.
#[derive(Debug)]
pub(in crate::egress) enum Framing {
    /// So many bytes more.
    Length(u64),
    /// Its last chunk.
    Chunked(Chunked),
    /// The end of the connection.
    Close,
}

impl Framing {
    /// The end of a response to a request of this method, and whether every reader sees it there.
    pub(super) fn of(
        method: &Method,
        status: StatusCode,
        headers: &Fields,
    ) -> Result<(Self, bool), Fault> {
        let length = length(headers)?;
        if *method == Method::HEAD {
            return Ok((Self::Length(0), true));
        }
        let is_coded = headers.contains(&TRANSFER_ENCODING);
        match status {
            // Some send a body all the same.
            StatusCode::NO_CONTENT => {
                let says_none = !is_coded && length.unwrap_or_default() == 0;
                return Ok((Self::Length(0), says_none));
            }
            // The length of what was not modified.
            StatusCode::NOT_MODIFIED => return Ok((Self::Length(0), !is_coded)),
            _ => {}
        }
        // The last coding decides; whoever reads on refuses what stands beside it.
        let coding = headers.all(&TRANSFER_ENCODING).next_back();
        let framing = match (coding, length) {
            (Some(coding), _) if ends_chunked(coding) => Self::Chunked(Chunked::default()),
            (Some(_), _) | (None, None) => Self::Close,
            (None, Some(length)) => Self::Length(length),
        };
        Ok((framing, !(is_coded && length.is_some())))
    }

    /// Whether everything was read, as far as can be told without reading on.
    pub(in crate::egress) fn is_ended(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunked) => chunked.is_ended(),
            Self::Close => false,
        }
    }

    /// How many bytes may still come, at most.
    pub(in crate::egress) fn left(&self) -> usize {
        match self {
            Self::Length(left) => usize::try_from(*left).unwrap_or(usize::MAX),
            Self::Chunked(_) | Self::Close => usize::MAX,
        }
    }

    /// Takes what is there of the body from the front of `input`; empty where more has to be read.
    pub(in crate::egress) fn take(&mut self, input: &mut BytesMut) -> Result<Bytes, Fault> {
        Ok(match self {
            Self::Length(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX);
                let here = here.min(input.len());
                *left -= here as u64;
                input.split_to(here).freeze()
            }
            Self::Chunked(chunked) => chunked.decode(input)?,
            Self::Close => input.split().freeze(),
        })
    }
}

fn ends_chunked(codings: &[u8]) -> bool {
    let last = codings.rsplit(|byte| *byte == b',').next();
    last.is_some_and(|last| last.trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

/// What `Content-Length` says. A list of the same number is one number (RFC 9110, section 8.6).
pub(in crate::egress) fn length(headers: &Fields) -> Result<Option<u64>, Fault> {
    let mut length = None;
    for value in headers.all(&CONTENT_LENGTH) {
        for text in value.split(|byte| *byte == b',') {
            let number = digits(text.trim_ascii());
            let number = number.ok_or(Fault::Ambiguous("its length is no number"))?;
            if length.replace(number).is_some_and(|other| other != number) {
                return Err(Fault::Ambiguous("it has two lengths"));
            }
        }
    }
    Ok(length)
}

/// A transfer coding beside `chunked` would reach us undone (RFC 9112, section 6.1); the error is its text.
pub(in crate::egress) fn only_chunked(headers: &Fields) -> Result<(), String> {
    let values = headers.all(&TRANSFER_ENCODING).enumerate();
    let is_chunked = |value: &[u8]| value.eq_ignore_ascii_case(b"chunked");
    let mut others = values.filter(|(at, value)| *at > 0 || !is_chunked(value));
    match others.next() {
        None => Ok(()),
        Some((_, other)) => Err(String::from_utf8_lossy(other).chars().take(64).collect()),
    }
}

/// The number that a `Content-Length` says in digits (RFC 9110, section 8.6). `u64::from_str` would take a sign.
pub fn digits(text: &[u8]) -> Option<u64> {
    let only_digits = text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok().filter(|_| only_digits);
    text.and_then(|text| text.parse().ok())
}
