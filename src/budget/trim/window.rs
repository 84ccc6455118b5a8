//! Which blocks of a result stay: from a long list only its first and last ones are ever held.

use std::collections::VecDeque;

use super::SHORT;
use crate::budget::shape::{Form, Item};

/// Bytes of what stands for a block, at most.
const STAND_IN: usize = 448;

/// The first and the last blocks of a list.
pub(super) struct Window {
    max: usize,
    marker: usize,
    head: Vec<Item>,
    head_least: usize,
    tail: VecDeque<Item>,
    tail_least: usize,
    count: usize,
    /// Bytes of all blocks.
    pub(super) bytes: usize,
    /// Bytes of all their texts.
    pub(super) texts: usize,
}

/// What is shown of a list: blocks, each with how much of its text; 0 has it stood for.
#[derive(Default)]
pub(super) struct Chosen<'w> {
    pub(super) head: Vec<(&'w Item, usize)>,
    pub(super) tail: Vec<(&'w Item, usize)>,
    /// How many lie between them.
    pub(super) between: usize,
    /// Where the first of those begins.
    pub(super) from: usize,
}

impl Window {
    /// For a result of at most `max` bytes.
    pub(super) fn new(form: Form, max: usize) -> Self {
        Self {
            max,
            marker: form.marker_bytes(),
            head: Vec::new(),
            head_least: 0,
            tail: VecDeque::new(),
            tail_least: 0,
            count: 0,
            bytes: 0,
            texts: 0,
        }
    }

    pub(super) fn push(&mut self, item: Item) {
        self.count += 1;
        self.bytes += item.whole.len();
        self.texts += item.text.len();
        let least = least(&item, self.marker);
        if self.head_least <= self.max {
            self.head_least += least;
            self.head.push(item);
            return;
        }
        self.tail_least += least;
        self.tail.push_back(item);
        while self.tail_least > self.max
            && let Some(first) = self.tail.pop_front()
        {
            self.tail_least -= self::least(&first, self.marker);
        }
    }

    /// Shares `room` bytes out: first who stays, then who is shown, then how much of the long texts.
    pub(super) fn choose(&self, room: usize) -> Chosen<'_> {
        let marker = self.marker;
        let all: Vec<&Item> = self.head.iter().chain(&self.tail).collect();
        let least = |item: &&Item| self::least(item, marker);
        let whole = all.len() == self.count && all.iter().map(least).sum::<usize>() <= room;
        let (front, back) = if whole {
            (all.len(), 0)
        } else {
            let half = room.saturating_sub(STAND_IN) / 2;
            let front = within(all.iter().map(least), half);
            let back = within(all[front..].iter().rev().map(least), half);
            (front, back)
        };
        let between = self.count - front - back;
        let from = all.get(front).map_or(0, |item| item.whole.start as usize);
        let kept: Vec<&Item> = [&all[..front], &all[all.len() - back..]].concat();
        let used: usize = kept.iter().map(least).sum();
        let stand_in = if between > 0 { STAND_IN } else { 0 };
        let levels = levels(&kept, room.saturating_sub(used + stand_in), marker);
        let mut head: Vec<_> = kept.into_iter().zip(levels).collect();
        let tail = head.split_off(front);
        Chosen {
            head,
            tail,
            between,
            from,
        }
    }
}

/// How many of these fit into `room`.
fn within(sizes: impl Iterator<Item = usize>, room: usize) -> usize {
    let mut used = 0;
    sizes
        .take_while(|size| {
            used += size;
            used <= room
        })
        .count()
}

/// Bytes of a block that is shown with as little text as possible, and a comma.
fn floor(item: &Item, marker: usize) -> usize {
    let (whole, text) = (item.whole.len() + 1, item.text.len());
    whole - text.saturating_sub(SHORT + marker)
}

/// Bytes that a block takes at least.
fn least(item: &Item, marker: usize) -> usize {
    floor(item, marker).min(STAND_IN)
}

/// How much of each block's text is shown, with `spare` bytes beyond what all take at least: texts before base64, which gets
/// half at most; then all texts as much as they have up to one level.
fn levels(items: &[&Item], mut spare: usize, marker: usize) -> Vec<usize> {
    let mut levels = vec![0; items.len()];
    for binary in [false, true] {
        if binary {
            spare /= 2;
        }
        for (item, level) in items.iter().zip(&mut levels) {
            let more = floor(item, marker) - least(item, marker);
            if item.binary == binary && more <= spare {
                spare -= more;
                *level = SHORT + marker;
            }
        }
        if binary {
            spare *= 2;
        }
    }
    let more = |level: usize| {
        let shown = items.iter().zip(&levels).filter(|(_, level)| **level > 0);
        let each = shown.map(|(item, _)| {
            let text = item.text.len().min(level + marker);
            text.saturating_sub(SHORT + marker)
        });
        each.sum::<usize>()
    };
    let (mut fits, mut over) = (SHORT, SHORT + spare + 1);
    while over - fits > 1 {
        let middle = fits.midpoint(over);
        if more(middle) <= spare {
            fits = middle;
        } else {
            over = middle;
        }
    }
    let longest = items.iter().map(|item| item.text.len()).max();
    for (item, level) in items
        .iter()
        .zip(&mut levels)
        .filter(|(_, level)| **level > 0)
    {
        // A text that is no longer than its mark would make it stays whole.
        let stays = item.text.len() <= fits + marker;
        *level = if stays {
            longest.unwrap_or_default().max(1)
        } else {
            fits
        };
    }
    levels
}
