//! The keys of the objects that are open, to find one that stands twice.

use std::{borrow::Cow, collections::HashSet};

/// Up to this many keys an object is searched from end to end, which is faster than hashing.
const NARROW: usize = 16;

/// The member of `members` that `key` is not, but that a parser which ignores case takes it for: Go's `encoding/json`
/// folds ASCII letters, U+017F and U+212A, and libraries that end strings at a NUL take `"name\0"` for `"name"`.
pub(in crate::mcp) fn lookalike(key: &str, members: &[&'static str]) -> Option<&'static str> {
    let folded = || key.chars().filter(|c| *c != '\0').map(fold);
    members
        .iter()
        .find(|member| key.len() >= member.len() && folded().eq(member.chars().map(fold)))
        .copied()
}

fn fold(c: char) -> char {
    match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        _ => c.to_ascii_lowercase(),
    }
}

#[derive(Debug)]
struct Object {
    first: usize,
    is_wide: bool,
}

/// The keys seen so far, innermost object last.
#[derive(Debug, Default)]
pub(super) struct Keys<'a> {
    seen: Vec<Cow<'a, str>>,
    objects: Vec<Object>,
    /// The keys of those objects that are wide.
    hashed: Vec<HashSet<Cow<'a, str>>>,
}

impl<'a> Keys<'a> {
    /// None yet, with room for those of most messages.
    pub(super) fn with_room() -> Self {
        Self {
            seen: Vec::with_capacity(NARROW),
            objects: Vec::with_capacity(8),
            hashed: Vec::new(),
        }
    }

    /// An object begins.
    pub(super) fn open(&mut self) {
        self.objects.push(Object {
            first: self.seen.len(),
            is_wide: false,
        });
    }

    /// The innermost object ends.
    pub(super) fn close(&mut self) {
        if let Some(object) = self.objects.pop() {
            self.seen.truncate(object.first);
            if object.is_wide {
                self.hashed.pop();
            }
        }
    }

    /// Adds a key of the innermost object; false if it stands there already.
    pub(super) fn insert(&mut self, key: Cow<'a, str>) -> bool {
        let Some(object) = self.objects.last_mut() else {
            return true;
        };
        if object.is_wide {
            return self.hashed.last_mut().is_none_or(|keys| keys.insert(key));
        }
        let own = &self.seen[object.first..];
        if own.contains(&key) {
            return false;
        }
        if own.len() < NARROW {
            self.seen.push(key);
        } else {
            let mut hashed: HashSet<_> = self.seen.drain(object.first..).collect();
            hashed.insert(key);
            self.hashed.push(hashed);
            object.is_wide = true;
        }
        true
    }
}
