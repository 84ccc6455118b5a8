//! What is written into a request's head on the way to a tool server.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// The longest value, in bytes; servers refuse heads that are longer.
const LONGEST: usize = 16 << 10;

/// A header that authorizes a request: `Authorization: Bearer …`, or one that the operator named. Its value is marked
/// sensitive and wiped with the last request that carries it; it cannot be printed or copied.
pub struct Credential {
    name: HeaderName,
    value: HeaderValue,
    digest: [u8; 32],
}

impl Credential {
    /// `Authorization: Bearer` with this token (RFC 6750, section 2.1); `None` where it cannot stand in a header: empty,
    /// longer than 16 KiB, or not all visible ASCII.
    pub fn bearer(token: &[u8]) -> Option<Self> {
        const SCHEME: &[u8] = b"Bearer ";
        if token.is_empty() || !token.iter().all(u8::is_ascii_graphic) {
            return None;
        }
        let mut value = Zeroizing::new(Vec::with_capacity(SCHEME.len() + token.len()));
        value.extend_from_slice(SCHEME);
        value.extend_from_slice(token);
        Self::new(header::AUTHORIZATION, value)
    }

    /// A header of the operator's choice; `None` where the value cannot stand in it: empty, longer than 16 KiB, not all
    /// visible ASCII and spaces, or with a space at an end.
    pub fn header(name: HeaderName, value: &[u8]) -> Option<Self> {
        let (Some(first), Some(last)) = (value.first(), value.last()) else {
            return None;
        };
        let inner = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
        if *first == b' ' || *last == b' ' || !value.iter().all(inner) {
            return None;
        }
        Self::new(name, Zeroizing::new(value.to_vec()))
    }

    fn new(name: HeaderName, value: Zeroizing<Vec<u8>>) -> Option<Self> {
        if value.len() > LONGEST {
            return None;
        }
        let digest = Sha256::digest(&value).into();
        let mut value = HeaderValue::from_maybe_shared(Bytes::from_owner(value)).ok()?;
        value.set_sensitive(true);
        Some(Self {
            name,
            value,
            digest,
        })
    }

    /// The header's name.
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// The header's value.
    pub fn value(&self) -> &HeaderValue {
        &self.value
    }

    /// SHA-256 of the value, to tell later whether this one was refused.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

#[cfg(test)]
mod tests;
