//! The keys of the objects that are open, to find one that stands twice.

use std::{borrow::Cow, collections::HashSet};

/// Up to this many keys an object is searched from end to end, which is faster than hashing.
const NARROW: usize = 16;

#[derive(Debug)]
struct Object<'a> {
    first: usize,
    hashed: Option<HashSet<Cow<'a, str>>>,
}

/// The keys seen so far, innermost object last.
#[derive(Debug, Default)]
pub(super) struct Keys<'a> {
    seen: Vec<Cow<'a, str>>,
    objects: Vec<Object<'a>>,
}

impl<'a> Keys<'a> {
    /// An object begins.
    pub(super) fn open(&mut self) {
        self.objects.push(Object {
            first: self.seen.len(),
            hashed: None,
        });
    }

    /// The innermost object ends.
    pub(super) fn close(&mut self) {
        if let Some(object) = self.objects.pop() {
            self.seen.truncate(object.first);
        }
    }

    /// Adds a key of the innermost object; false if it stands there already.
    pub(super) fn insert(&mut self, key: Cow<'a, str>) -> bool {
        let Some(object) = self.objects.last_mut() else {
            return true;
        };
        if let Some(hashed) = &mut object.hashed {
            return hashed.insert(key);
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
            object.hashed = Some(hashed);
        }
        true
    }
}
