//! Marking: HMAC-SHA-256 (RFC 2104, FIPS 198-1) under a key that HKDF-SHA256 (RFC 5869) derives for one purpose.

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Marks what is kept where others could write, and knows its marks again. It shows nothing of itself; its key is wiped
/// when it is dropped.
pub struct Mac {
    key: Zeroizing<[u8; 32]>,
}

impl Mac {
    pub(super) fn derive(key: &[u8; 32], purpose: &'static str) -> Self {
        let mut subkey = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(None, key)
            .expand_multi_info(&[b"tollgate mac 1 ", purpose.as_bytes()], &mut *subkey)
            .expect("32 bytes are within what HKDF-SHA256 gives");
        Self { key: subkey }
    }

    /// The mark of these parts in this order. Each counts with its length before it (8 bytes, big-endian), so that no
    /// other division of the same bytes has the same mark.
    pub fn sign(&self, parts: &[&[u8]]) -> [u8; 32] {
        self.over(parts).finalize().into_bytes().into()
    }

    /// Whether `mark` is that of `parts`; takes as long wherever they differ.
    pub fn verify(&self, parts: &[&[u8]], mark: &[u8; 32]) -> bool {
        self.over(parts).verify_slice(mark).is_ok()
    }

    fn over(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&*self.key).expect("HMAC takes a key of any length");
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}
