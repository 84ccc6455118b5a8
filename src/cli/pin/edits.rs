//! What changed from one sequence to another: what is unique in both anchors the rest (patience diff), and between
//! anchors the longest common subsequence decides.

use std::{collections::HashMap, hash::Hash, ops::Range};

/// Pairs that are compared in one gap at most; a larger one is one change.
const MOST_PAIRS: usize = 1 << 20;
/// How often gaps are looked for within gaps.
const DEEPEST: usize = 16;

/// A stretch of the old in whose place a stretch of the new stands; one of the two may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// What changed from `old` to `new`, in order.
pub(super) fn changes<T: Eq + Hash>(old: &[T], new: &[T]) -> Vec<Change> {
    let mut changes = Vec::new();
    let whole = Change {
        old: 0..old.len(),
        new: 0..new.len(),
    };
    walk(old, new, whole, DEEPEST, &mut changes);
    changes
}

fn walk<T: Eq + Hash>(old: &[T], new: &[T], gap: Change, depth: usize, out: &mut Vec<Change>) {
    let gap = trimmed(old, new, gap);
    if gap.old.is_empty() && gap.new.is_empty() {
        return;
    }
    if gap.old.is_empty() || gap.new.is_empty() {
        return out.push(gap);
    }
    let mut pairs = if depth > 0 {
        anchors(old, new, &gap)
    } else {
        Vec::new()
    };
    let anchored = !pairs.is_empty();
    if !anchored {
        pairs = common(old, new, &gap);
    }
    let (mut x, mut y) = (gap.old.start, gap.new.start);
    for (a, b) in pairs.into_iter().chain([(gap.old.end, gap.new.end)]) {
        let between = Change {
            old: x..a,
            new: y..b,
        };
        if anchored {
            walk(old, new, between, depth - 1, out);
        } else if a > x || b > y {
            out.push(between);
        }
        (x, y) = (a + 1, b + 1);
    }
}

/// The gap without what is equal at its ends.
fn trimmed<T: Eq>(old: &[T], new: &[T], gap: Change) -> Change {
    let (a, b) = (&old[gap.old.clone()], &new[gap.new.clone()]);
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let ends = a[start..].iter().rev().zip(b[start..].iter().rev());
    let end = ends.take_while(|(a, b)| a == b).count();
    Change {
        old: gap.old.start + start..gap.old.end - end,
        new: gap.new.start + start..gap.new.end - end,
    }
}

/// The places of what stands once in both sides of the gap, as many as are in the same order.
fn anchors<T: Eq + Hash>(old: &[T], new: &[T], gap: &Change) -> Vec<(usize, usize)> {
    let once = |all: &[T], range: &Range<usize>| {
        let mut places: HashMap<usize, usize> = HashMap::new();
        let mut first: HashMap<&T, usize> = HashMap::new();
        for at in range.clone() {
            *places
                .entry(*first.entry(&all[at]).or_insert(at))
                .or_default() += 1;
        }
        places.retain(|_, count| *count == 1);
        places
    };
    let (in_old, in_new) = (once(old, &gap.old), once(new, &gap.new));
    let by_value: HashMap<&T, usize> = in_new.keys().map(|at| (&new[*at], *at)).collect();
    let mut pairs: Vec<(usize, usize)> = in_old
        .keys()
        .filter_map(|at| by_value.get(&old[*at]).map(|other| (*at, *other)))
        .collect();
    pairs.sort_unstable();
    rising(&pairs)
}

/// A longest part of `pairs` in which the second numbers rise, too.
fn rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // Of the rising parts of each length, where the one that ends lowest ends.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, (_, second)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *second);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut part = Vec::new();
    let mut next = ends.last().copied();
    while let Some(at) = next {
        part.push(pairs[at]);
        next = before[at];
    }
    part.reverse();
    part
}

/// The places of a longest common subsequence; of a gap that is too large, none.
fn common<T: Eq>(old: &[T], new: &[T], gap: &Change) -> Vec<(usize, usize)> {
    let (a, b) = (&old[gap.old.clone()], &new[gap.new.clone()]);
    if a.len().saturating_mul(b.len()) > MOST_PAIRS {
        return Vec::new();
    }
    let width = b.len() + 1;
    // How long the longest one of the rests from each pair of places on is.
    let mut longest = vec![0_u32; (a.len() + 1) * width];
    for x in (0..a.len()).rev() {
        for y in (0..b.len()).rev() {
            longest[x * width + y] = if a[x] == b[y] {
                longest[(x + 1) * width + y + 1] + 1
            } else {
                longest[(x + 1) * width + y].max(longest[x * width + y + 1])
            };
        }
    }
    let (mut x, mut y, mut pairs) = (0, 0, Vec::new());
    while x < a.len() && y < b.len() {
        if a[x] == b[y] {
            pairs.push((gap.old.start + x, gap.new.start + y));
            (x, y) = (x + 1, y + 1);
        } else if longest[(x + 1) * width + y] >= longest[x * width + y + 1] {
            x += 1;
        } else {
            y += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(old: &str, new: &str) -> Vec<(Range<usize>, Range<usize>)> {
        let (old, new): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
        let found = changes(&old, &new).into_iter();
        found.map(|change| (change.old, change.new)).collect()
    }

    #[test]
    fn changes_are_small_and_in_order() {
        assert_eq!(of("", ""), []);
        assert_eq!(of("abc", "abc"), []);
        assert_eq!(of("abc", "abxc"), [(2..2, 2..3)]);
        assert_eq!(of("abcd", "ad"), [(1..3, 1..1)]);
        assert_eq!(
            of("xaxbx", "yaybyx"),
            [(0..1, 0..1), (2..3, 2..3), (4..4, 4..5)]
        );
        assert_eq!(of("aaaa", "aabaa"), [(2..2, 2..3)]);
    }

    #[test]
    fn of_many_lines_two_that_changed_far_apart_are_found() {
        let old: Vec<usize> = (0..200_000).collect();
        let mut new = old.clone();
        new[100] = 1_000_000;
        new.insert(150_000, 1_000_001);
        let found = changes(&old, &new);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].new, 150_000..150_001);
    }

    proptest! {
        #[test]
        fn changes_lead_from_the_old_to_the_new(old in "[a-d]{0,40}", new in "[a-d]{0,40}") {
            let (old, new): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
            let (mut made, mut at) = (Vec::new(), 0);
            for change in changes(&old, &new) {
                made.extend_from_slice(&old[at..change.old.start]);
                made.extend_from_slice(&new[change.new.clone()]);
                at = change.old.end;
            }
            made.extend_from_slice(&old[at..]);
            prop_assert_eq!(made, new);
        }
    }
}
