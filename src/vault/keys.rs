//! What is in a keyring: the root key, from which sealers and marks are derived, and the data keys of the vault.

use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::Kid;
use crate::id;

/// The most data keys that a keyring holds.
pub(super) const MOST: usize = 16;

/// How a data key may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// Seals and opens; there is one.
    Primary,
    /// Opens what it sealed.
    DecryptOnly,
    /// Does nothing, and can be taken back or destroyed.
    Disabled,
}

impl KeyState {
    const ALL: [Self; 3] = [Self::Primary, Self::DecryptOnly, Self::Disabled];

    /// Its word in the file and in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::DecryptOnly => "decrypt_only",
            Self::Disabled => "disabled",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A data key.
pub(super) struct DataKey {
    pub(super) kid: Kid,
    pub(super) state: KeyState,
    pub(super) key: Zeroizing<[u8; 32]>,
}

impl DataKey {
    pub(super) fn new(key: Zeroizing<[u8; 32]>, state: KeyState) -> Self {
        let digest = Sha256::new()
            .chain_update(b"tollgate data key 1 ")
            .chain_update(key.as_slice())
            .finalize();
        let kid = digest.first_chunk().expect("a digest has 32 bytes");
        Self {
            kid: Kid(*kid),
            state,
            key,
        }
    }
}

/// The content of a keyring; every key is wiped when dropped.
pub(super) struct Keys {
    pub(super) root: Zeroizing<[u8; 32]>,
    /// Tells this deployment's records from those of another one; the same in every process that shares the keyring.
    pub(super) deployment: [u8; 16],
    /// From 1 to [`MOST`], exactly one of them primary.
    pub(super) data: Vec<DataKey>,
}

impl Keys {
    /// New ones.
    pub(super) fn random() -> Self {
        let key = Zeroizing::new(id::random());
        Self {
            root: Zeroizing::new(id::random()),
            deployment: id::random(),
            data: vec![DataKey::new(key, KeyState::Primary)],
        }
    }

    /// Those of a keyring of form 1, which has only a root key: the others are derived from it, so that they are the same
    /// in every process, and stay what they are once they are written out.
    pub(super) fn of_root(root: Zeroizing<[u8; 32]>) -> Self {
        let (mut deployment, mut key) = ([0; 16], Zeroizing::new([0; 32]));
        let hkdf = Hkdf::<Sha256>::new(None, &*root);
        for (info, out) in [
            (&b"tollgate deployment 1"[..], &mut deployment[..]),
            (b"tollgate first data key 1", &mut key[..]),
        ] {
            hkdf.expand(info, out)
                .expect("32 bytes are within what HKDF-SHA256 gives");
        }
        Self {
            root,
            deployment,
            data: vec![DataKey::new(key, KeyState::Primary)],
        }
    }

    /// Those that a file lists, if they can be a keyring's.
    pub(super) fn listed(
        root: Zeroizing<[u8; 32]>,
        deployment: [u8; 16],
        data: Vec<DataKey>,
    ) -> Option<Self> {
        let primaries = data.iter().filter(|key| key.state == KeyState::Primary);
        let twice = (1..data.len()).any(|at| data[..at].iter().any(|key| key.kid == data[at].kid));
        let sound = primaries.count() == 1 && !twice && data.len() <= MOST;
        sound.then_some(Self {
            root,
            deployment,
            data,
        })
    }

    /// The key that seals.
    pub(super) fn primary(&self) -> &DataKey {
        self.data
            .iter()
            .find(|key| key.state == KeyState::Primary)
            .expect("a keyring has a primary key")
    }

    /// A key that may open.
    pub(super) fn usable(&self, kid: Kid) -> Option<&DataKey> {
        self.data
            .iter()
            .find(|key| key.kid == kid && key.state != KeyState::Disabled)
    }

    /// The same keys once more; few hold them.
    pub(super) fn again(&self) -> Self {
        let again = |key: &DataKey| DataKey {
            kid: key.kid,
            state: key.state,
            key: key.key.clone(),
        };
        Self {
            root: self.root.clone(),
            deployment: self.deployment,
            data: self.data.iter().map(again).collect(),
        }
    }

    /// Whether both are states of one keyring.
    pub(super) fn same_keyring(&self, other: &Self) -> bool {
        self.deployment == other.deployment && *self.root == *other.root
    }

    /// Whether both have the same data keys, in the same states.
    pub(super) fn same_data(&self, other: &Self) -> bool {
        let shown =
            |keys: &Self| -> Vec<_> { keys.data.iter().map(|key| (key.kid, key.state)).collect() };
        shown(self) == shown(other)
    }

    /// Makes a new key primary, and the one before open only. `None` where there is no room for another.
    pub(super) fn rotate(&mut self) -> Option<Kid> {
        if self.data.len() == MOST {
            return None;
        }
        for key in &mut self.data {
            if key.state == KeyState::Primary {
                key.state = KeyState::DecryptOnly;
            }
        }
        let key = DataKey::new(Zeroizing::new(id::random()), KeyState::Primary);
        let kid = key.kid;
        self.data.push(key);
        Some(kid)
    }
}
