//! Values that nobody looks into: passed over in one loop, without a word about what is in them.

use super::text::{number_end, string_end};

/// Shows the members of an object that is the whole document, which is valid JSON that holds no more than `depth`
/// containers one in another: each key as it is written between its quotes, and the value. `None` where it is no such
/// object, or where `show` has seen enough.
pub(in crate::mcp) fn members<'a>(
    text: &'a str,
    depth: usize,
    mut show: impl FnMut(&'a str, &'a str) -> Option<()>,
) -> Option<()> {
    let bytes = text.as_bytes();
    let mut at = past_space(bytes, 0);
    let mut opening = b'{';
    loop {
        if bytes.get(at) != Some(&opening) {
            return None;
        }
        let begin = past_space(bytes, at + 1);
        let Key { quoted, value } = key(bytes, begin)?;
        let end = value_end(bytes, value, depth - 1)?;
        show(&text[begin + 1..quoted - 1], &text[value..end])?;
        at = past_space(bytes, end);
        if bytes.get(at) == Some(&b'}') {
            let rest = past_space(bytes, at + 1);
            return (rest == bytes.len()).then_some(());
        }
        opening = b',';
    }
}

fn value_end(bytes: &[u8], at: usize, depth: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'{' | b'[' => container_end(bytes, at, depth),
        _ => scalar_end(bytes, at),
    }
}

fn scalar_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => Some(string_end(bytes, at + 1).ok()?.end),
        b'-' | b'0'..=b'9' => Some(number_end(bytes, at).ok()?.0),
        _ => word_end(bytes, at),
    }
}

/// Containers that may be open at once, at most: a bit is kept for each.
const MAX_DEPTH: usize = 128;

/// The end of the object or array that begins at `start`, if it is valid JSON and holds no more than `depth` containers
/// one in another, itself included. `None` says only that it is to be read with care, to find out what is wrong with it.
pub(super) fn container_end(bytes: &[u8], start: usize, depth: usize) -> Option<usize> {
    let mut open = Open::default();
    let mut at = start;
    loop {
        // A value begins here.
        at = match bytes.get(at)? {
            b'{' => {
                open.push(true, depth)?;
                let inner = past_space(bytes, at + 1);
                if bytes.get(inner) != Some(&b'}') {
                    at = key(bytes, inner)?.value;
                    continue;
                }
                inner
            }
            b'[' => {
                open.push(false, depth)?;
                let inner = past_space(bytes, at + 1);
                if bytes.get(inner) != Some(&b']') {
                    at = inner;
                    continue;
                }
                inner
            }
            _ => scalar_end(bytes, at)?,
        };
        // It has ended, and perhaps what it stands in.
        loop {
            at = past_space(bytes, at);
            match (bytes.get(at)?, open.is_object) {
                (b',', true) => {
                    at = key(bytes, past_space(bytes, at + 1))?.value;
                    break;
                }
                (b',', false) => {
                    at = past_space(bytes, at + 1);
                    break;
                }
                (b'}', true) | (b']', false) => {
                    at += 1;
                    if open.pop() {
                        return Some(at);
                    }
                }
                _ => return None,
            }
        }
    }
}

/// What is open, innermost in the lowest bit.
#[derive(Default)]
struct Open {
    is_object: bool,
    around: u128,
    depth: usize,
}

impl Open {
    fn push(&mut self, is_object: bool, depth: usize) -> Option<()> {
        if self.depth == depth.min(MAX_DEPTH) {
            return None;
        }
        self.around = self.around << 1 | u128::from(self.is_object);
        self.is_object = is_object;
        self.depth += 1;
        Some(())
    }

    /// Whether nothing is left.
    fn pop(&mut self) -> bool {
        self.is_object = self.around & 1 == 1;
        self.around >>= 1;
        self.depth -= 1;
        self.depth == 0
    }
}

/// A key in front of its value.
struct Key {
    /// Where it ends, just after its closing quote.
    quoted: usize,
    /// Where its value begins.
    value: usize,
}

/// The key that begins at `at`.
fn key(bytes: &[u8], at: usize) -> Option<Key> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let quoted = string_end(bytes, at + 1).ok()?.end;
    let colon = past_space(bytes, quoted);
    (bytes.get(colon) == Some(&b':')).then(|| Key {
        quoted,
        value: past_space(bytes, colon + 1),
    })
}

fn word_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let words: [&[u8]; 3] = [b"true", b"false", b"null"];
    let word = words.into_iter().find(|word| rest.starts_with(word))?;
    Some(at + word.len())
}

fn past_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn end(text: &str) -> Option<usize> {
        container_end(text.as_bytes(), 0, MAX_DEPTH)
    }

    #[test]
    fn the_end_of_a_container_is_found() {
        for text in [
            "{}",
            "[ ]",
            r#"{"a":{"b":[1,{"c":"}]"}]},"d":null}"#,
            "[[],[{}],\n[ { } ] , true,false,-1.5e+3,\"\\\"\"]",
        ] {
            for after in ["", ",", "}", "x"] {
                assert_eq!(
                    end(&format!("{text}{after}")),
                    Some(text.len()),
                    "{text}{after}"
                );
            }
        }
    }

    #[test]
    fn whatever_is_not_valid_is_left_to_others() {
        for text in [
            "",
            "{",
            "[",
            "{]",
            "[}",
            "[1,]",
            "[,1]",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{a:1}"#,
            "[tru]",
            "[01]",
            "[1 2]",
            "[\"\u{1}\"]",
            r#"["\x"]"#,
            "[nul",
            r#"{"a":1]"#,
        ] {
            assert_eq!(end(text), None, "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(end(&nested(128)), Some(256));
        assert_eq!(end(&nested(129)), None);
        assert_eq!(container_end(nested(3).as_bytes(), 0, 3), Some(6));
        assert_eq!(container_end(nested(3).as_bytes(), 0, 2), None);
        let mixed = format!("{}1{}", "{\"a\":[".repeat(64), "]}".repeat(64));
        assert_eq!(end(&mixed), Some(mixed.len()));
    }

    proptest! {
        #[test]
        fn what_ends_is_json(text in r#"[\[\{][\[\]{},:"a1 .eE\-\\tn]{0,24}"#) {
            if let Some(end) = end(&text) {
                prop_assert!(serde_json::from_str::<&RawValue>(&text[..end]).is_ok(), "{}", text);
            }
        }
    }
}
