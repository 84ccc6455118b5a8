//! Owns: where a secret comes from, and how it is held.
//! Imports: no room.
//! Never: prints a secret; `Debug` shows only where it came from.
//! Fails as: a text for the file that named it.

use std::fmt;

use zeroize::Zeroizing;

/// Where a secret is kept: `env:NAME`, `file:PATH` or `credential:NAME` (systemd).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// An environment variable.
    Env(String),
    /// A file; a relative path stands beside the policy folder's files.
    File(String),
    /// A systemd credential.
    Credential(String),
}

impl Source {
    /// Reads the written form; the error says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(Self::Env(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.to_owned())),
            Some(("credential", name)) if !name.is_empty() && !name.contains('/') => {
                Ok(Self::Credential(name.to_owned()))
            }
            _ => Err("expected `env:NAME`, `file:PATH` or `credential:NAME`".to_owned()),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, place) = match self {
            Self::Env(name) => ("env", name),
            Self::File(path) => ("file", path),
            Self::Credential(name) => ("credential", name),
        };
        write!(out, "{kind}:{place}")
    }
}

/// Secret bytes, wiped when dropped.
#[derive(PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes the bytes over.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes, for the one who writes them where they belong.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_and_others_refused() {
        assert_eq!(Source::parse("env:KEY"), Ok(Source::Env("KEY".into())));
        assert_eq!(
            Source::parse("file:tls.key"),
            Ok(Source::File("tls.key".into()))
        );
        assert_eq!(
            Source::parse("credential:tls"),
            Ok(Source::Credential("tls".into()))
        );
        for text in ["env:KEY", "file:/etc/key", "credential:tls"] {
            assert_eq!(Source::parse(text).unwrap().to_string(), text);
        }
        for wrong in ["", "env:", "plain", "credential:../x", "vault:x"] {
            assert!(Source::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn debug_hides_the_bytes() {
        assert_eq!(
            format!("{:?}", Secret::new(b"hunter2".to_vec())),
            "Secret(…)"
        );
    }
}
