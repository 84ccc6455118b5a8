//! What differs between what is pinned and what was seen.

use super::{Item, ItemKind};

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing of this name is pinned.
    Added(Item),
    /// Something else is pinned under this name.
    Changed {
        /// Of what is pinned, what the new one most likely replaces: the newest that is no longer seen.
        old: Item,
        /// What was seen.
        new: Item,
    },
    /// It was not seen; that is no drift, since servers show some callers less than others.
    Absent(Item),
}

/// Every difference, by kind and name; the order of the items says nothing.
pub fn diff(pinned: &[Item], seen: &[Item]) -> Vec<Change> {
    let pinned = sorted(pinned);
    let seen = sorted(seen);
    let mut changes = Vec::new();
    for new in &seen {
        let olds = named(&pinned, new.kind, &new.name);
        if olds.iter().any(|old| old.digest == new.digest) {
            continue;
        }
        let shown = named(&seen, new.kind, &new.name);
        let is_gone = |old: &Item| shown.iter().all(|shown| shown.digest != old.digest);
        let old = olds.iter().max_by_key(|old| (is_gone(old), old.version));
        let new = (*new).clone();
        changes.push(match old {
            None => Change::Added(new),
            Some(old) => Change::Changed {
                old: (*old).clone(),
                new,
            },
        });
    }
    let absent = pinned
        .iter()
        .filter(|old| named(&seen, old.kind, &old.name).is_empty());
    changes.extend(absent.map(|old| Change::Absent((*old).clone())));
    changes
}

fn sorted(items: &[Item]) -> Vec<&Item> {
    let mut sorted: Vec<&Item> = items.iter().collect();
    sorted.sort_by(|one, other| one.key().cmp(&other.key()));
    sorted.dedup_by(|one, other| one.key() == other.key());
    sorted
}

fn named<'s, 'i>(sorted: &'s [&'i Item], kind: ItemKind, name: &str) -> &'s [&'i Item] {
    let key = |item: &&Item| (item.kind, &*item.name).cmp(&(kind, name));
    let start = sorted.partition_point(|item| key(item).is_lt());
    let len = sorted[start..].partition_point(|item| key(item).is_eq());
    &sorted[start..start + len]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::By;

    fn tool(name: &str, text: &str, version: u64) -> Item {
        let definition = format!(r#"{{"name":"{name}","description":"{text}"}}"#);
        let made = Item::new(
            ItemKind::Tool,
            name.into(),
            &definition,
            version,
            By::FirstUse,
        );
        made.expect("a definition")
    }

    #[test]
    fn each_difference_is_named_once() {
        let pinned = [tool("a", "old", 1), tool("b", "same", 1), tool("c", "", 2)];
        let seen = [tool("d", "", 0), tool("b", "same", 0), tool("a", "new", 0)];
        assert_eq!(
            diff(&pinned, &seen),
            [
                Change::Changed {
                    old: tool("a", "old", 1),
                    new: tool("a", "new", 0)
                },
                Change::Added(tool("d", "", 0)),
                Change::Absent(tool("c", "", 2)),
            ]
        );
        assert_eq!(diff(&pinned, &pinned), []);
    }

    #[test]
    fn of_several_definitions_the_one_that_is_gone_was_replaced() {
        let pinned = [tool("a", "modern", 1), tool("a", "legacy", 2)];
        let seen = [tool("a", "legacy", 0), tool("a", "new", 0)];
        let changed = Change::Changed {
            old: tool("a", "modern", 1),
            new: tool("a", "new", 0),
        };
        assert_eq!(diff(&pinned, &seen), [changed]);
    }
}
