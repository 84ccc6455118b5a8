//! Which characters hide something, by what stands beside them.
//!
//! Kept are: joiners between emoji and inside words of scripts that write with them; marks of direction beside
//! right-to-left letters; one variation selector after a character that has variants; the three flags that are written in
//! tags. All others of these are hidden, and so are controls but `\n`, `\t` and `\r`, embeddings, overrides and isolates,
//! zero-width spaces, invisible operators, fillers and soft hyphens.

use std::ops::Range;

use crate::budget::written::{boundary, char_at, char_before};

/// The flags of England, Scotland and Wales (Unicode, emoji tag sequences): what follows the black flag.
const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];
const BLACK_FLAG: char = '\u{1F3F4}';
const END_OF_TAGS: char = '\u{E007F}';

/// Whether the character `found`, which is written at `place`, hides something.
pub(super) fn is_hidden(text: &str, found: char, place: Range<usize>) -> bool {
    let before = || char_before(text, place.start);
    let after = || char_at(text, place.end).map(|(after, _)| after);
    match found {
        '\n' | '\t' | '\r' => false,
        '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}' => true,
        '\u{AD}' | '\u{34F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' => true,
        '\u{180E}' | '\u{200B}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' => true,
        '\u{3164}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}' => true,
        '\u{1D173}'..='\u{1D17A}' => true,
        '\u{200E}' | '\u{200F}' | '\u{61C}' => {
            !(before().is_some_and(right_to_left) || after().is_some_and(right_to_left))
        }
        '\u{200C}' => !(before().is_some_and(joins) && after().is_some_and(joins)),
        '\u{200D}' => !joined(text, place),
        '\u{180B}'..='\u{180D}' | '\u{180F}' => !before().is_some_and(mongolian),
        '\u{FE0E}' | '\u{FE0F}' => !before().is_some_and(has_emoji_form),
        '\u{FE00}'..='\u{FE0D}' => !before().is_some_and(has_variants),
        '\u{E0100}'..='\u{E01EF}' => !before().is_some_and(ideograph),
        '\u{E0020}'..='\u{E007F}' => !in_flag(text, place.start),
        '\u{E0000}'..='\u{E0FFF}' => true,
        _ => false,
    }
}

/// Whether the joiner at `place` joins emoji, the first perhaps in its emoji form, or follows a letter that is joined.
fn joined(text: &str, place: Range<usize>) -> bool {
    let before = char_before(text, place.start);
    let emoji = match before {
        Some('\u{FE0F}') => {
            let form = boundary(text, place.start - 1);
            char_before(text, form).is_some_and(has_emoji_form)
        }
        _ => before.is_some_and(pictograph),
    };
    let after = char_at(text, place.end).map(|(after, _)| after);
    emoji && after.is_some_and(pictograph) || before.is_some_and(joins)
}

/// Letters and signs of scripts that are written with joiners: Arabic and its kin, those of India, Burmese, Khmer,
/// Tibetan, Mongolian.
fn joins(found: char) -> bool {
    let letter = matches!(
        found,
        '\u{620}'..='\u{7FF}'
            | '\u{840}'..='\u{DFF}'
            | '\u{F00}'..='\u{109F}'
            | '\u{1780}'..='\u{17B3}'
            | '\u{17B6}'..='\u{17DD}'
            | '\u{1820}'..='\u{18AF}'
            | '\u{A840}'..='\u{A97F}'
            | '\u{FB50}'..='\u{FDFF}'
            | '\u{FE70}'..='\u{FEFC}'
            | '\u{11000}'..='\u{11FFF}'
    );
    letter && !mongolian_selector(found)
}

fn mongolian(found: char) -> bool {
    ('\u{1820}'..='\u{18AF}').contains(&found)
}

fn mongolian_selector(found: char) -> bool {
    ('\u{180B}'..='\u{180F}').contains(&found)
}

fn right_to_left(found: char) -> bool {
    matches!(
        found,
        '\u{591}'..='\u{61B}' | '\u{61D}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}'
            | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}'
    )
}

/// Emoji, their skin tones, and the signs that follow a joiner.
fn pictograph(found: char) -> bool {
    matches!(
        found,
        '\u{2190}'..='\u{21FF}' | '\u{2300}'..='\u{23FF}' | '\u{25A0}'..='\u{27BF}' | '\u{2900}'..='\u{297F}'
            | '\u{2B00}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}'
    )
}

fn has_emoji_form(found: char) -> bool {
    let sign = matches!(
        found,
        '0'..='9' | '#' | '*' | '©' | '®' | '\u{203C}' | '\u{2049}' | '\u{2100}'..='\u{214F}'
            | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}' | '\u{24C2}'
    );
    sign || pictograph(found)
}

/// Characters with standardized variants: ideographs, full-width punctuation, mathematical signs, Burmese and Phags-pa.
fn has_variants(found: char) -> bool {
    ideograph(found)
        || matches!(
            found,
            '\u{1000}'..='\u{109F}' | '\u{2200}'..='\u{22FF}' | '\u{2A00}'..='\u{2AFF}' | '\u{3001}' | '\u{3002}'
                | '\u{A840}'..='\u{A877}' | '\u{AA60}'..='\u{AA7F}' | '\u{FF01}'..='\u{FF1F}'
        )
}

fn ideograph(found: char) -> bool {
    matches!(found, '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// Whether the tag at `at` is part of a flag: one of [`FLAGS`] and its end behind a black flag.
fn in_flag(text: &str, at: usize) -> bool {
    let mut start = at;
    for _ in 0..6 {
        match char_before(text, start) {
            Some(BLACK_FLAG) => return FLAGS.iter().any(|flag| is_flag(text, start, flag)),
            Some('\u{E0020}'..='\u{E007F}') => start = boundary(text, start - 1),
            _ => return false,
        }
    }
    false
}

fn is_flag(text: &str, start: usize, flag: &str) -> bool {
    let tags = flag
        .chars()
        .filter_map(|letter| char::from_u32(0xE0000 + u32::from(letter)));
    let mut at = start;
    tags.chain([END_OF_TAGS]).all(|tag| {
        let found = char_at(text, at);
        at = found.map_or(at, |(_, end)| end);
        found.is_some_and(|(found, _)| found == tag)
    })
}
