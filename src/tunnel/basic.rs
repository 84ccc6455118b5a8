//! `Proxy-Authorization`: Basic (RFC 7617), as proxy URLs give it, and Bearer (RFC 6750, section 2.1).

use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderValue;
use zeroize::Zeroizing;

use crate::{
    refusal::{Code, Refusal},
    secret::Secret,
};

/// The longest user name, in bytes.
const MAX_USER: usize = 256;
/// The longest key, in bytes.
const MAX_KEY: usize = 256;

/// What a client of the proxy presents. Nobody has judged it yet.
#[derive(Debug)]
pub struct Credential {
    /// The user that it acts for, visible ASCII; `None` where the user name is empty, and with Bearer.
    pub user: Option<String>,
    /// The agent key, visible ASCII.
    pub key: Secret,
}

impl Credential {
    /// Reads the value of `Proxy-Authorization`, [`Head::authorization`](super::Head::authorization).
    ///
    /// # Errors
    ///
    /// [`CredentialError`]; `None` is [`CredentialError::Missing`].
    pub fn read(value: Option<&HeaderValue>) -> Result<Self, CredentialError> {
        let value = value.ok_or(CredentialError::Missing)?.as_bytes();
        let (scheme, rest) = match memchr::memchr(b' ', value) {
            Some(at) => (&value[..at], value[at..].trim_ascii()),
            None => (value, &[][..]),
        };
        if scheme.eq_ignore_ascii_case(b"basic") {
            basic(rest)
        } else if scheme.eq_ignore_ascii_case(b"bearer") {
            let key = key(rest)?;
            Ok(Self { user: None, key })
        } else {
            Err(CredentialError::Scheme)
        }
    }
}

/// Why there is no credential. No variant holds what was presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// No `Proxy-Authorization`.
    #[error("the request carries no `Proxy-Authorization`")]
    Missing,
    /// A scheme that is not read.
    #[error("`Proxy-Authorization` is neither `Basic` nor `Bearer`")]
    Scheme,
    /// Basic without base64 of `user:key`.
    #[error("`Proxy-Authorization: Basic` does not hold the base64 of `user:key`")]
    Basic,
    /// A user name that cannot be one.
    #[error(
        "the user name of the proxy credential is not visible ASCII of at most {MAX_USER} characters"
    )]
    User,
    /// An empty password. It is often the key that stands before the colon then.
    #[error("the password of the proxy credential is empty")]
    NoKey,
    /// A key that cannot be one.
    #[error("the key of the proxy credential is not visible ASCII of at most {MAX_KEY} characters")]
    Key,
}

impl CredentialError {
    /// The code of the refusal.
    pub fn code(self) -> Code {
        match self {
            Self::Missing => Code::ProxyCredentialMissing,
            _ => Code::ProxyCredentialInvalid,
        }
    }
}

impl From<CredentialError> for Refusal {
    fn from(error: CredentialError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

fn basic(encoded: &[u8]) -> Result<Credential, CredentialError> {
    // Longer ones are refused before a buffer would have to grow, which leaves copies behind.
    let mut plain = Zeroizing::new([0; MAX_USER + 1 + MAX_KEY]);
    let read = STANDARD.decode_slice(encoded, &mut *plain);
    let plain = &plain[..read.map_err(|_| CredentialError::Basic)?];
    let colon = memchr::memchr(b':', plain).ok_or(CredentialError::Basic)?;
    let key = key(&plain[colon + 1..])?;
    let user = match &plain[..colon] {
        [] => None,
        user if is_text(user, MAX_USER) => Some(String::from_utf8_lossy(user).into_owned()),
        _ => return Err(CredentialError::User),
    };
    Ok(Credential { user, key })
}

fn key(text: &[u8]) -> Result<Secret, CredentialError> {
    match text {
        [] => Err(CredentialError::NoKey),
        text if is_text(text, MAX_KEY) => Ok(Secret::new(text.to_vec())),
        _ => Err(CredentialError::Key),
    }
}

fn is_text(text: &[u8], max: usize) -> bool {
    text.len() <= max && text.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests;
