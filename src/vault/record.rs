//! The record: how what is kept for a person is sealed (format 1).
//!
//! `"TGV" ‖ 0x01 ‖ 0x01 ‖ kid[8] ‖ salt[16] ‖ commit[16] ‖ nonce[12] ‖ ciphertext ‖ tag[16]`
//!
//! Each record has a key of its own: of the 48 bytes that HKDF-SHA256 (RFC 5869) derives from the data key, the salt and
//! `tollgate/vault/1/PURPOSE`, the first 32 are the key of AES-256-GCM (NIST SP 800-38D), and the others commit to it, so
//! that no bytes open under two keys. What is authenticated besides the text is all before the nonce, then the number of
//! fields (4 bytes, big-endian), then each field with its length (4 bytes, big-endian) before it: deployment, purpose,
//! record, tenant, user, server, issuer, client, resource, grant, version. The length of an absent field is `u32::MAX`.

use std::fmt;

use aes_gcm::{Aes256Gcm, KeyInit, aead::AeadInOut};
use hkdf::Hkdf;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{keyring::form, keys::Keys};
use crate::id;

/// Magic, format and algorithm.
const START: [u8; 5] = *b"TGV\x01\x01";
const KID: usize = 8;
const SALT: usize = 16;
const COMMIT: usize = 16;
const NONCE: usize = 12;
const TAG: usize = 16;
/// All before the nonce.
const HEAD: usize = START.len() + KID + SALT + COMMIT;

/// What every record is longer than its plain text, in bytes.
pub(super) const OVERHEAD: usize = HEAD + NONCE + TAG;

/// The name of a data key: the first 8 bytes of a digest of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kid(pub [u8; KID]);

impl Kid {
    /// The key that a record was sealed under, as it says; `None` for what is no record.
    pub fn of(sealed: &[u8]) -> Option<Self> {
        let (kid, _) = sealed.strip_prefix(&START)?.split_first_chunk()?;
        Some(Self(*kid))
    }

    /// Reads what [`Kid`] is shown as.
    pub fn parse(text: &str) -> Option<Self> {
        let mut kid = [0; KID];
        form::unhex(text.as_bytes(), &mut kid).then_some(Self(kid))
    }
}

impl fmt::Display for Kid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&id::hex(&self.0))
    }
}

/// What a record is; a record of one purpose opens for no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// The tokens of one connection.
    Grant,
    /// A client that was registered at an issuer.
    Client,
    /// A flow that a person began in a browser.
    Pending,
    /// A refresh result that the database would not take yet.
    Spool,
    /// A static secret that a person entered.
    Secret,
    /// A static secret that the operator keeps for everybody of a tenant.
    Shared,
    /// What was discovered of a server's authorization, and pinned.
    Discovery,
    /// What shows that a database and a keyring belong together.
    Check,
}

impl Purpose {
    /// Its text in the seal.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Grant => "grant",
            Self::Client => "client",
            Self::Pending => "pending",
            Self::Spool => "spool",
            Self::Secret => "secret",
            Self::Shared => "shared",
            Self::Discovery => "discovery",
            Self::Check => "check",
        }
    }
}

/// What a record belongs to: it opens only with exactly the same. An absent field differs from an empty one.
#[derive(Clone, Copy, Debug)]
pub struct Binding<'a> {
    /// What it is.
    pub purpose: Purpose,
    /// The row.
    pub record: Uuid,
    /// Whose.
    pub tenant: &'a str,
    /// Whose, within the tenant.
    pub user: Option<&'a str>,
    /// For which server.
    pub server: Option<&'a str>,
    /// Of which issuer, byte for byte.
    pub issuer: Option<&'a str>,
    /// Of which client id.
    pub client: Option<&'a str>,
    /// For which resource, byte for byte.
    pub resource: Option<&'a str>,
    /// Of which connection.
    pub grant: Option<[u8; 16]>,
    /// Of the row: an older blob does not open in a newer row.
    pub version: u64,
}

impl Binding<'_> {
    /// Bound to a row, and to nobody and nothing besides.
    pub fn of_row(purpose: Purpose, record: Uuid, version: u64) -> Self {
        Self {
            purpose,
            record,
            tenant: "",
            user: None,
            server: None,
            issuer: None,
            client: None,
            resource: None,
            grant: None,
            version,
        }
    }
}

impl Binding<'_> {
    /// What is authenticated besides the text.
    fn authenticated(&self, head: &[u8], deployment: &[u8; 16]) -> Vec<u8> {
        let version = self.version.to_be_bytes();
        let fields: [Option<&[u8]>; 11] = [
            Some(deployment),
            Some(self.purpose.as_str().as_bytes()),
            Some(self.record.as_bytes()),
            Some(self.tenant.as_bytes()),
            self.user.map(str::as_bytes),
            self.server.map(str::as_bytes),
            self.issuer.map(str::as_bytes),
            self.client.map(str::as_bytes),
            self.resource.map(str::as_bytes),
            self.grant.as_ref().map(<[u8; 16]>::as_slice),
            Some(&version),
        ];
        let mut all = head.to_vec();
        all.extend_from_slice(&(fields.len() as u32).to_be_bytes());
        for field in fields {
            // No field comes near the length that stands for an absent one: it would not fit into memory beside its seal.
            let length = field.map_or(u32::MAX, |field| field.len() as u32);
            all.extend_from_slice(&length.to_be_bytes());
            all.extend_from_slice(field.unwrap_or_default());
        }
        all
    }
}

/// The bytes of an opened record, wiped when dropped. It cannot be printed or copied.
pub struct Opened(Zeroizing<Vec<u8>>);

impl Opened {
    /// The bytes, for the one who needs them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

/// Why a record does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unopened {
    /// Not a record of this format.
    #[error("not a record of this version")]
    Form,
    /// Sealed under a key that the keyring does not have, or has as disabled.
    #[error("sealed under the key {0}, which the keyring does not have, or has as disabled")]
    UnknownKey(Kid),
    /// Changed, moved from elsewhere, or of another version.
    #[error("changed since it was sealed, or moved here from elsewhere")]
    Tampered,
}

/// Seals `plain` under the primary key.
pub(super) fn seal(keys: &Keys, binding: &Binding<'_>, plain: &[u8]) -> Vec<u8> {
    seal_with(keys, binding, plain, &id::random(), &id::random())
}

pub(super) fn seal_with(
    keys: &Keys,
    binding: &Binding<'_>,
    plain: &[u8],
    salt: &[u8; SALT],
    nonce: &[u8; NONCE],
) -> Vec<u8> {
    let primary = keys.primary();
    let (cipher, commit) = derive(&primary.key, salt, binding.purpose);
    let mut sealed = Vec::with_capacity(plain.len() + OVERHEAD);
    sealed.extend_from_slice(&START);
    sealed.extend_from_slice(&primary.kid.0);
    sealed.extend_from_slice(salt);
    sealed.extend_from_slice(&commit);
    let authenticated = binding.authenticated(&sealed, &keys.deployment);
    sealed.extend_from_slice(nonce);
    sealed.extend_from_slice(plain);
    let text = (&mut sealed[HEAD + NONCE..]).into();
    let tag = cipher
        .encrypt_inout_detached(&(*nonce).into(), &authenticated, text)
        .expect("what fits into memory is shorter than 64 GiB");
    sealed.extend_from_slice(&tag);
    sealed
}

/// Opens what was sealed for `binding`.
pub(super) fn open(keys: &Keys, binding: &Binding<'_>, sealed: &[u8]) -> Result<Opened, Unopened> {
    let kid = Kid::of(sealed).ok_or(Unopened::Form)?;
    let (head, rest) = sealed.split_at_checked(HEAD).ok_or(Unopened::Form)?;
    let (nonce, rest) = rest.split_first_chunk::<NONCE>().ok_or(Unopened::Form)?;
    let (text, tag) = rest.split_last_chunk::<TAG>().ok_or(Unopened::Form)?;
    let (salt, commit) = head[START.len() + KID..].split_at(SALT);
    let key = keys.usable(kid).ok_or(Unopened::UnknownKey(kid))?;
    let (cipher, expected) = derive(&key.key, salt, binding.purpose);
    if !bool::from(commit.ct_eq(&expected)) {
        return Err(Unopened::Tampered);
    }
    let authenticated = binding.authenticated(head, &keys.deployment);
    let mut plain = Zeroizing::new(text.to_vec());
    let text = plain.as_mut_slice().into();
    cipher
        .decrypt_inout_detached(&(*nonce).into(), &authenticated, text, &(*tag).into())
        .map_err(|_| Unopened::Tampered)?;
    Ok(Opened(plain))
}

/// A record's own cipher, and what commits to it.
fn derive(key: &[u8; 32], salt: &[u8], purpose: Purpose) -> (Aes256Gcm, [u8; COMMIT]) {
    let mut derived = Zeroizing::new([0; 32 + COMMIT]);
    Hkdf::<Sha256>::new(Some(salt), key)
        .expand_multi_info(
            &[b"tollgate/vault/1/", purpose.as_str().as_bytes()],
            &mut *derived,
        )
        .expect("48 bytes are within what HKDF-SHA256 gives");
    let (key, commit) = derived
        .split_first_chunk::<32>()
        .expect("48 bytes begin with 32");
    let commit = commit.try_into().expect("16 bytes are left");
    (Aes256Gcm::new(key.into()), commit)
}
