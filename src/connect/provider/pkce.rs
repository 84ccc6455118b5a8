//! Proof that who brings a code is who asked for it (RFC 7636), by S256 and nothing else.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::id;

/// The secret of one flow: 256 random bits, as 43 characters (section 4.1).
pub(in crate::connect) struct Verifier(Zeroizing<String>);

impl Verifier {
    /// A new one.
    pub(in crate::connect) fn new() -> Self {
        let bytes = Zeroizing::new(id::random::<32>());
        Self(Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes.as_slice())))
    }

    /// The secret, for the token request and for the sealed flow.
    pub(in crate::connect) fn expose(&self) -> &str {
        &self.0
    }

    /// What is shown of it beforehand: `code_challenge` for the method `S256` (section 4.2).
    pub(in crate::connect) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.0.as_bytes()))
    }
}

impl Default for Verifier {
    fn default() -> Self {
        Self::new()
    }
}

impl From<Zeroizing<String>> for Verifier {
    /// The one of a flow that was begun.
    fn from(text: Zeroizing<String>) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Verifier(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_rfc() {
        let text = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let verifier = Verifier::from(Zeroizing::new(text.to_owned()));
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        assert_eq!(verifier.challenge(), challenge, "RFC 7636, appendix B");
    }

    #[test]
    fn each_is_another_of_43_characters_and_none_is_shown() {
        let (one, other) = (Verifier::new(), Verifier::new());
        assert_ne!(one.expose(), other.expose());
        assert_eq!(one.expose().len(), 43);
        assert_eq!(format!("{one:?}"), "Verifier(…)");
    }
}
