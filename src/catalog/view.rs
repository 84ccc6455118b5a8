//! From where a caller looks at a server: servers show other tools to clients of another era, or with other capabilities.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use super::ItemKind;
use crate::mcp::{Revision, canonical};

/// What a server can tell callers apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View([u8; 32]);

/// That of modern clients that offer nothing, which most are.
static PLAIN: LazyLock<View> = LazyLock::new(|| View::of(Revision::MODERN, "{}"));

impl View {
    /// The view of a client that speaks `revision` and whose `capabilities`, a JSON text, the server is told.
    pub fn of(revision: Revision, capabilities: &str) -> Self {
        let text = canonical::canonical(capabilities.as_bytes());
        let mut hash = Sha256::new_with_prefix(revision.as_str());
        hash.update([0]);
        hash.update(text.as_deref().unwrap_or(capabilities.as_bytes()));
        Self(hash.finalize().into())
    }

    /// The view of a modern client that offers nothing.
    pub fn plain() -> Self {
        *PLAIN
    }

    /// What says in [`Pinned::views`](super::Pinned::views) that the first list of this kind was taken.
    pub(super) fn mark(self, kind: ItemKind) -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix(kind.as_str());
        hash.update([0]);
        hash.update(self.0);
        hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_can_see_tells_views_apart() {
        let of = |capabilities| View::of(Revision::MODERN, capabilities);
        assert_eq!(View::plain(), of(" {\t}"));
        assert_eq!(
            of(r#"{"roots":{},"sampling":{}}"#),
            of(r#"{ "sampling":{}, "roots":{} }"#)
        );
        assert_ne!(View::plain(), of(r#"{"roots":{}}"#));
        assert_ne!(View::plain(), View::of(Revision::LEGACY, "{}"));
    }

    #[test]
    fn each_kind_has_a_mark_of_its_own() {
        let marks = ItemKind::ALL.map(|kind| View::plain().mark(kind));
        for (at, mark) in marks.iter().enumerate() {
            assert!(!marks[at + 1..].contains(mark));
        }
    }
}
