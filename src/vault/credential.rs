//! What is written into a request's head on the way to a tool server.

use http::{HeaderName, HeaderValue};

/// A header that authorizes a request: `Authorization: Bearer …`, or one that the operator named. Its value is marked
/// sensitive; it cannot be printed or copied.
pub struct Credential {
    name: HeaderName,
    value: HeaderValue,
    digest: [u8; 32],
}

impl Credential {
    /// `Authorization: Bearer` with this token (RFC 6750, section 2.1); `None` where it cannot stand in a header.
    pub fn bearer(_token: &[u8]) -> Option<Self> {
        unimplemented!()
    }

    /// A header of the operator's choice.
    pub fn header(_name: HeaderName, _value: &[u8]) -> Option<Self> {
        unimplemented!()
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
