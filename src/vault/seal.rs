//! Sealing: AES-256-GCM (NIST SP 800-38D) under a key that HKDF-SHA256 (RFC 5869) derives for one purpose.
//!
//! Sealed bytes are `version ‖ key id ‖ nonce ‖ ciphertext ‖ tag`: 1, 4 (big-endian), 12, n and 16 bytes.

use std::sync::Arc;

use aes_gcm::{Aes256Gcm, KeyInit, aead::AeadInOut};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::id;

const VERSION: u8 = 1;
const NONCE: usize = 12;
const TAG: usize = 16;

/// Seals and opens for one purpose; cheap to clone. It shows nothing of itself.
///
/// Nonces are drawn at random, so one purpose seals at most 2^32 times under one keyring.
#[derive(Clone)]
pub struct Sealer {
    /// Version and key id.
    head: [u8; 5],
    cipher: Arc<Aes256Gcm>,
}

impl Sealer {
    /// What every sealed text is longer than the plain one, in bytes.
    pub const OVERHEAD: usize = 5 + NONCE + TAG;

    pub(super) fn derive(key_id: u32, key: &[u8; 32], purpose: &'static str) -> Self {
        let mut subkey = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(None, key)
            .expand_multi_info(&[b"tollgate seal 1 ", purpose.as_bytes()], &mut *subkey)
            .expect("32 bytes are within what HKDF-SHA256 gives");
        let [a, b, c, d] = key_id.to_be_bytes();
        Self {
            head: [VERSION, a, b, c, d],
            cipher: Arc::new(Aes256Gcm::new((&*subkey).into())),
        }
    }

    /// Seals `plain`, so that it opens only with the same `aad`, which says what it belongs to and is not kept.
    pub fn seal(&self, plain: &[u8], aad: &[u8]) -> Vec<u8> {
        self.seal_with(id::random(), plain, aad)
    }

    pub(super) fn seal_with(&self, nonce: [u8; NONCE], plain: &[u8], aad: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(plain.len() + Self::OVERHEAD);
        sealed.extend_from_slice(&self.head);
        sealed.extend_from_slice(&nonce);
        let start = sealed.len();
        sealed.extend_from_slice(plain);
        let text = (&mut sealed[start..]).into();
        let tag = self
            .cipher
            .encrypt_inout_detached(&nonce.into(), aad, text)
            .expect("what fits into memory is shorter than 64 GiB");
        sealed.extend_from_slice(&tag);
        sealed
    }

    /// What was sealed under this purpose and `aad`; `None` for anything else, whatever is wrong with it.
    pub fn open(&self, sealed: &[u8], aad: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let rest = sealed.strip_prefix(&self.head)?;
        let (nonce, rest) = rest.split_first_chunk::<NONCE>()?;
        let (text, tag) = rest.split_last_chunk::<TAG>()?;
        let mut plain = Zeroizing::new(text.to_vec());
        let text = plain.as_mut_slice().into();
        self.cipher
            .decrypt_inout_detached(&(*nonce).into(), aad, text, &(*tag).into())
            .ok()?;
        Some(plain)
    }
}
