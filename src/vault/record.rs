//! The record: how what is kept for a person is sealed (format 1).
//!
//! `"TGV" ‖ 0x01 ‖ 0x01 ‖ kid[8] ‖ salt[16] ‖ commit[16] ‖ nonce[12] ‖ ciphertext ‖ tag[16]`

use uuid::Uuid;
use zeroize::Zeroizing;

/// The name of a data key: the first 8 bytes of a digest of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kid(pub [u8; 8]);

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
    /// What was discovered of a server's authorization, and pinned.
    Discovery,
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
    /// Sealed under a key that the keyring does not have.
    #[error("sealed under a key that is not in the keyring")]
    UnknownKey(Kid),
    /// Changed, moved from elsewhere, or of another version.
    #[error("changed since it was sealed, or moved here from elsewhere")]
    Tampered,
}

/// Seals and opens records; cheap to clone. It shows nothing of itself.
#[derive(Clone)]
pub struct Vault {
    _keys: std::sync::Arc<()>,
}

impl Vault {
    /// Seals `plain`, under the primary key, for what it belongs to.
    pub fn seal(&self, _binding: &Binding<'_>, _plain: &[u8]) -> Vec<u8> {
        unimplemented!()
    }

    /// Opens what was sealed for `binding`.
    ///
    /// # Errors
    ///
    /// Anything else is not opened, whatever is wrong with it.
    pub fn open(&self, _binding: &Binding<'_>, _sealed: &[u8]) -> Result<Opened, Unopened> {
        unimplemented!()
    }

    /// The key that seals now.
    pub fn primary(&self) -> Kid {
        unimplemented!()
    }
}
