//! The body of a ClientHello (RFC 8446, section 4.1.2).

use super::{Hello, HelloError};
use crate::address::{Host, Name};

/// `server_name` (RFC 6066, section 3).
const SERVER_NAME: usize = 0;
/// `encrypted_client_hello` (RFC 9849).
const ENCRYPTED_CLIENT_HELLO: usize = 0xfe0d;
/// The one type of server name there is.
const HOST_NAME: usize = 0;

/// Reads a whole body.
pub(super) fn read(body: &[u8]) -> Result<Hello, HelloError> {
    let mut body = Bytes(body);
    let version = body.take(2, "it ends before its version")?;
    if version[0] != 3 {
        return Err(HelloError::Malformed("its version is not of TLS"));
    }
    body.take(32, "it ends within its random bytes")?;
    let session = body.vector(1, "it ends within its session id")?;
    if session.0.len() > 32 {
        return Err(HelloError::Malformed("its session id is too long"));
    }
    let suites = body.vector(2, "it ends within its cipher suites")?;
    if suites.0.is_empty() || suites.0.len() % 2 != 0 {
        return Err(HelloError::Malformed(
            "its cipher suites are no list of numbers",
        ));
    }
    let compression = body.vector(1, "it ends within its compression methods")?;
    if compression.0.is_empty() {
        return Err(HelloError::Malformed("it has no compression method"));
    }
    if body.0.is_empty() {
        return Err(HelloError::NoName);
    }
    let list = body.vector(2, "it ends within its extensions")?;
    if !body.0.is_empty() {
        return Err(HelloError::Malformed("more follows its extensions"));
    }
    extensions(list)
}

fn extensions(mut list: Bytes<'_>) -> Result<Hello, HelloError> {
    let (mut kinds, mut name) = (Vec::new(), None);
    while !list.0.is_empty() {
        let kind = list.number(2, "it ends within an extension")?;
        let data = list.vector(2, "it ends within an extension")?;
        kinds.push(kind);
        if kind == SERVER_NAME {
            name = Some(data);
        }
    }
    kinds.sort_unstable();
    if let Some(twice) = kinds.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(HelloError::Doubled(twice[0]));
    }
    let ech = kinds.binary_search(&ENCRYPTED_CLIENT_HELLO).is_ok();
    match name {
        Some(data) => Ok(Hello {
            name: server_name(data)?,
            ech,
        }),
        None if ech => Err(HelloError::OnlyEncrypted),
        None => Err(HelloError::NoName),
    }
}

/// The one name that stands in `server_name`.
fn server_name(mut data: Bytes<'_>) -> Result<Name, HelloError> {
    let mut list = data.vector(2, "it ends within its server name")?;
    let kind = list.number(1, "its list of server names is empty")?;
    let name = list.vector(2, "it ends within its server name")?;
    if kind != HOST_NAME {
        return Err(HelloError::Malformed(
            "its server name is of an unknown type",
        ));
    }
    if !list.0.is_empty() {
        return Err(HelloError::SeveralNames);
    }
    if !data.0.is_empty() {
        return Err(HelloError::Malformed("more follows its server name"));
    }
    host_name(name.0)
}

fn host_name(name: &[u8]) -> Result<Name, HelloError> {
    let text = std::str::from_utf8(name)
        .map_err(|_| HelloError::Malformed("its server name is not ASCII"))?;
    if text.ends_with('.') {
        return Err(HelloError::Malformed("its server name ends in a dot"));
    }
    match Host::from_url(text).map_err(HelloError::BadName)? {
        Host::Name(name) => Ok(name),
        Host::Ip(_) => Err(HelloError::AddressName),
    }
}

/// What is left to read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize, fault: &'static str) -> Result<&'a [u8], HelloError> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(HelloError::Malformed(fault))?;
        self.0 = rest;
        Ok(taken)
    }

    /// A number of `width` bytes, one or two.
    fn number(&mut self, width: usize, fault: &'static str) -> Result<usize, HelloError> {
        let bytes = self.take(width, fault)?;
        Ok(bytes
            .iter()
            .fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// What a number of `width` bytes announces.
    fn vector(&mut self, width: usize, fault: &'static str) -> Result<Self, HelloError> {
        let length = self.number(width, fault)?;
        self.take(length, fault).map(Self)
    }
}
