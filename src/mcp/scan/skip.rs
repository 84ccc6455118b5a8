//! Values that nobody looks into: passed over in one loop, without a word about what is in them. Everything here takes
//! what is left of a document and returns what is left after it.

use super::text::{number_end, plain_end, string_end};

/// Shows the members of an object that is the whole document, which is valid JSON that holds no more than `depth`
/// containers one in another: each key as it is written between its quotes, and the value. `None` where it is no such
/// object, or where `show` has seen enough.
pub(in crate::mcp) fn members<'a>(
    document: &'a [u8],
    depth: usize,
    mut show: impl FnMut(&'a [u8], &'a [u8]) -> Option<()>,
) -> Option<()> {
    let mut rest = past_space(document);
    let mut opening = b'{';
    loop {
        let key = past(b'"', past_space(past(opening, rest)?))?;
        let after_key = past_string(key)?;
        let value = past_colon(after_key)?;
        rest = past_value(value, depth - 1)?;
        let quote = after_key.len() + 1;
        show(
            &key[..key.len() - quote],
            &value[..value.len() - rest.len()],
        )?;
        rest = past_space(rest);
        if let Some(end) = past(b'}', rest) {
            return past_space(end).is_empty().then_some(());
        }
        opening = b',';
    }
}

fn past_value(rest: &[u8], depth: usize) -> Option<&[u8]> {
    match rest.first()? {
        b'{' | b'[' => container(rest, depth),
        _ => past_scalar(rest),
    }
}

fn past_scalar(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [b'"', inner @ ..] => past_string(inner),
        [b'-' | b'0'..=b'9', ..] => rest.get(number_end(rest, 0).ok()?.0..),
        _ => past_word(rest),
    }
}

/// Containers that may be open at once, at most: a bit is kept for each.
const MAX_DEPTH: usize = 128;

/// What follows the object or array that begins here, if it is valid JSON and holds no more than `depth` containers one in
/// another, itself included. `None` says only that it is to be read with care, to find out what is wrong with it.
pub(in crate::mcp) fn container(mut rest: &[u8], depth: usize) -> Option<&[u8]> {
    let mut open = Open::default();
    loop {
        // A value begins here.
        rest = match rest {
            [b'{', inner @ ..] => {
                open.push(true, depth)?;
                let inner = past_space(inner);
                if inner.first() != Some(&b'}') {
                    rest = past_key(inner)?;
                    continue;
                }
                inner
            }
            [b'[', inner @ ..] => {
                open.push(false, depth)?;
                let inner = past_space(inner);
                if inner.first() != Some(&b']') {
                    rest = inner;
                    continue;
                }
                inner
            }
            _ => past_scalar(rest)?,
        };
        // It has ended, and perhaps what it stands in.
        loop {
            rest = past_space(rest);
            match (rest, open.is_object) {
                ([b',', next @ ..], true) => {
                    rest = past_key(past_space(next))?;
                    break;
                }
                ([b',', next @ ..], false) => {
                    rest = past_space(next);
                    break;
                }
                ([b'}', after @ ..], true) | ([b']', after @ ..], false) => {
                    rest = after;
                    if open.pop() {
                        return Some(rest);
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

/// The value of the key that begins here.
fn past_key(rest: &[u8]) -> Option<&[u8]> {
    past_colon(past_string(past(b'"', rest)?)?)
}

fn past_colon(rest: &[u8]) -> Option<&[u8]> {
    Some(past_space(past(b':', past_space(rest))?))
}

/// What follows the string that `rest` is inside of.
fn past_string(rest: &[u8]) -> Option<&[u8]> {
    match rest.get(plain_end(rest, 0)..)? {
        [b'"', after @ ..] => Some(after),
        _ => rest.get(string_end(rest, 0).ok()?.end..),
    }
}

fn past_word(rest: &[u8]) -> Option<&[u8]> {
    let words: [&[u8]; 3] = [b"true", b"false", b"null"];
    words.into_iter().find_map(|word| rest.strip_prefix(word))
}

fn past(byte: u8, rest: &[u8]) -> Option<&[u8]> {
    let (first, rest) = rest.split_first()?;
    (*first == byte).then_some(rest)
}

fn past_space(mut rest: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\n' | b'\r', after @ ..] = rest {
        rest = after;
    }
    rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn end_within(text: &str, depth: usize) -> Option<usize> {
        container(text.as_bytes(), depth).map(|rest| text.len() - rest.len())
    }

    fn end(text: &str) -> Option<usize> {
        end_within(text, MAX_DEPTH)
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
        assert_eq!(end_within(&nested(3), 3), Some(6));
        assert_eq!(end_within(&nested(3), 2), None);
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
