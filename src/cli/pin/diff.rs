//! A definition against the one before it, line by line, and in long lines word by word.

use std::{fmt::Write, ops::Range};

use super::edits::{Change, changes};
use crate::{cli::style::Styles, mcp::pretty::pretty};

/// Unchanged lines around a change.
const CONTEXT: usize = 3;
/// Longer stretches of a line that stayed the same are shown without their middle.
const LONG: usize = 160;
/// Characters kept at each end of such a stretch.
const AROUND: usize = 48;
/// Words of one line that are compared at most.
const MOST_WORDS: usize = 20_000;

/// How `new`, in canonical form, differs from `old`; nothing that is written could move a cursor or hide.
pub(super) fn unified(old: &str, new: &str, styles: Styles) -> String {
    let (old, new) = (shown(old), shown(new));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut out = String::new();
    let mut group: Vec<Change> = Vec::new();
    for change in changes(&old, &new) {
        let far = group
            .last()
            .is_some_and(|last| change.old.start - last.old.end > 2 * CONTEXT);
        if far {
            hunk(&mut out, &old, &new, &group, styles);
            group.clear();
        }
        group.push(change);
    }
    hunk(&mut out, &old, &new, &group, styles);
    out
}

/// A definition of which nothing was known before.
pub(super) fn whole(definition: &str, styles: Styles) -> String {
    let lines = shown(definition);
    let lines = lines.lines();
    lines
        .map(|line| format!("{}\n", styles.added(&format!("+{line}"))))
        .collect()
}

fn shown(definition: &str) -> String {
    let mut out = String::with_capacity(2 * definition.len());
    pretty(definition, 0, &mut out);
    out
}

fn hunk(out: &mut String, old: &[&str], new: &[&str], group: &[Change], styles: Styles) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return;
    };
    let before = first.old.start.min(CONTEXT);
    let after = (old.len() - last.old.end).min(CONTEXT);
    let (old_lines, new_lines) = (
        first.old.start - before..last.old.end + after,
        first.new.start - before..last.new.end + after,
    );
    let head = format!("@@ -{} +{} @@", span(&old_lines), span(&new_lines));
    line(out, &styles.dim(&head));
    let mut at = old_lines.start;
    for change in group {
        same(out, &old[at..change.old.start]);
        let (gone, come) = (&old[change.old.clone()], &new[change.new.clone()]);
        if gone.len() == come.len() {
            let pairs = gone.iter().zip(come);
            let pairs: Vec<_> = pairs.map(|(old, new)| by_words(old, new, styles)).collect();
            pairs.iter().for_each(|(old, _)| line(out, old));
            pairs.iter().for_each(|(_, new)| line(out, new));
        } else {
            for text in gone {
                line(out, &styles.removed(&format!("-{text}")));
            }
            for text in come {
                line(out, &styles.added(&format!("+{text}")));
            }
        }
        at = change.old.end;
    }
    same(out, &old[at..old_lines.end]);
}

fn span(lines: &Range<usize>) -> String {
    format!("{},{}", lines.start + 1, lines.len())
}

fn same(out: &mut String, lines: &[&str]) {
    for text in lines {
        line(out, &format!(" {}", shortened(text)));
    }
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("writing to memory does not fail");
}

/// A line that took the place of another: what changed in it stands out.
fn by_words(old: &str, new: &str, styles: Styles) -> (String, String) {
    let (old, new) = (words(old), words(new));
    let found = if old.len().max(new.len()) > MOST_WORDS {
        vec![Change {
            old: 0..old.len(),
            new: 0..new.len(),
        }]
    } else {
        changes(&old, &new)
    };
    let old_ranges: Vec<_> = found.iter().map(|change| change.old.clone()).collect();
    let new_ranges: Vec<_> = found.into_iter().map(|change| change.new).collect();
    let paint_old = |text: &str, changed| match changed {
        true => styles.removed_word(text),
        false => styles.removed(text),
    };
    let paint_new = |text: &str, changed| match changed {
        true => styles.added_word(text),
        false => styles.added(text),
    };
    (
        painted("-", &old, &old_ranges, paint_old),
        painted("+", &new, &new_ranges, paint_new),
    )
}

fn painted(
    sign: &str,
    words: &[&str],
    changed: &[Range<usize>],
    paint: impl Fn(&str, bool) -> String,
) -> String {
    let mut out = paint(sign, false);
    let mut at = 0;
    let whole = words.len()..words.len();
    for range in changed.iter().chain([&whole]) {
        let text = shortened(&words[at..range.start].concat());
        if !text.is_empty() {
            out.push_str(&paint(&text, false));
        }
        let text = words[range.clone()].concat();
        if !text.is_empty() {
            out.push_str(&paint(&text, true));
        }
        at = range.end;
    }
    out
}

/// A long text that stayed the same, without its middle.
fn shortened(text: &str) -> String {
    let length = text.chars().count();
    if length <= LONG {
        return text.to_owned();
    }
    let start: String = text.chars().take(AROUND).collect();
    let end: String = text.chars().skip(length - AROUND).collect();
    format!("{start}[… {} unchanged …]{end}", length - 2 * AROUND)
}

/// Words, and single characters between them.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut in_word = false;
    for (at, character) in text.char_indices() {
        let letter = character.is_alphanumeric() || character == '_';
        if at > start && !(letter && in_word) {
            words.push(&text[start..at]);
            start = at;
        }
        in_word = letter;
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_the_lines_around_it() {
        let old = r#"{"a":1,"b":{"c":[1,2,3]},"d":"x","e":"y","f":1,"g":2,"h":3,"i":4,"j":5,"k":6,"k2":6,"l":7}"#;
        let new = r#"{"a":1,"b":{"c":[1,3]},"d":"x","e":"z","f":1,"g":2,"h":3,"i":4,"j":5,"k":6,"k2":6,"l":8,"m":0}"#;
        assert_eq!(
            unified(old, new, Styles::plain()),
            "\
@@ -3,12 +3,11 @@
   \"b\": {
     \"c\": [
       1,
-      2,
       3
     ]
   },
   \"d\": \"x\",
-  \"e\": \"y\",
+  \"e\": \"z\",
   \"f\": 1,
   \"g\": 2,
   \"h\": 3,
@@ -16,5 +15,6 @@
   \"j\": 5,
   \"k\": 6,
   \"k2\": 6,
-  \"l\": 7
+  \"l\": 8,
+  \"m\": 0
 }
"
        );
        assert_eq!(unified(old, old, Styles::plain()), "");
    }

    #[test]
    fn nothing_hides_and_long_lines_show_what_changed() {
        let text = "word ".repeat(200);
        let old = format!("\"{text}reads it. {text}\"");
        let new = format!("\"{text}reads\u{200b} it\u{202e}. {text}\"");
        assert_eq!(
            unified(&old, &new, Styles::plain()),
            "\
@@ -1,1 +1,1 @@
-\"word word word word word word word word word wo[… 910 unchanged …]rd word word word word word word word word \
reads it. word word word word word word word word word w[… 907 unchanged …]d word word word word word word word word \
word \"
+\"word word word word word word word word word wo[… 910 unchanged …]rd word word word word word word word word \
reads\\u200b it\\u202e. word word word word word word word word word w[… 907 unchanged …]d word word word word word \
word word word word \"
"
        );
        assert_eq!(whole("\"\u{9b}31m\"", Styles::plain()), "+\"\\u009b31m\"\n");
    }

    #[test]
    fn changed_words_stand_out_in_colour() {
        let painted = unified("\"it reads\"", "\"it writes\"", Styles::coloured());
        assert_eq!(
            painted,
            "\u{1b}[2m@@ -1,1 +1,1 @@\u{1b}[0m\n\
             \u{1b}[31m-\u{1b}[0m\u{1b}[31m\"it \u{1b}[0m\u{1b}[7m\u{1b}[31mreads\u{1b}[0m\u{1b}[31m\"\u{1b}[0m\n\
             \u{1b}[32m+\u{1b}[0m\u{1b}[32m\"it \u{1b}[0m\u{1b}[7m\u{1b}[32mwrites\u{1b}[0m\u{1b}[32m\"\u{1b}[0m\n"
        );
    }
}
