//! From where a caller looks at a server: servers show other tools to clients of another era, or whom they can ask more.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use super::ItemKind;
use crate::mcp::{Revision, capabilities::Offer};

/// What a server has reason to tell callers apart by: the revision, and which questions it may ask. There are no more
/// than 64, whatever callers write into their capabilities: each has a first list, and a caller who could make up views
/// could have first lists taken without an end, or use up the room for those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View([u8; 32]);

/// That of modern clients that offer nothing, which most are.
static PLAIN: LazyLock<View> = LazyLock::new(|| View::of(Revision::MODERN, &Offer::default()));

impl View {
    /// The view of a client that speaks `revision`, for whom the server is told this offer.
    pub fn of(revision: Revision, offer: &Offer) -> Self {
        let mut hash = Sha256::new_with_prefix(revision.as_str());
        hash.update([0]);
        hash.update(offer.questions().map(u8::from));
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
    use std::collections::HashSet;

    use super::*;
    use crate::mcp::Question;

    #[test]
    fn what_a_server_may_ask_tells_views_apart() {
        let mut views = HashSet::new();
        for revision in Revision::SERVED {
            for asked in [
                &[][..],
                &[Question::Elicit],
                &[Question::Sample],
                &[Question::Roots],
                &[Question::Roots, Question::Sample],
            ] {
                let offer = Offer::all(|question| asked.contains(&question));
                views.insert(View::of(revision, &offer));
            }
        }
        assert_eq!(views.len(), 20);
        assert!(views.contains(&View::plain()));
    }

    #[test]
    fn each_kind_has_a_mark_of_its_own() {
        let marks = ItemKind::ALL.map(|kind| View::plain().mark(kind));
        for (at, mark) in marks.iter().enumerate() {
            assert!(!marks[at + 1..].contains(mark));
        }
    }
}
