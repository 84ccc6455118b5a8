//! Texts of any shape (errors, notices, questions): their longest strings are cut until the whole is short enough.

use std::ops::Range;

use super::written::boundary;

/// Strings up to so many bytes are never cut.
const SHORT: usize = 128;

/// Bytes that stand in place of what is cut, at most.
const SAID: usize = 64;

/// Members whose strings mean something to programs: to cut them would change what is done.
const WHOLE: [&str; 10] = [
    "requestState",
    "url",
    "uri",
    "method",
    "mode",
    "name",
    "requestId",
    "progressToken",
    "resultType",
    "jsonrpc",
];

/// A string of a JSON text.
pub(super) struct Found<'a> {
    /// What stands between its quotes.
    pub(super) inner: Range<usize>,
    /// The key that was read last; its own where it is the value of one.
    pub(super) key: &'a str,
}

/// The strings of `text`, valid JSON, that are no keys.
pub(super) fn values(text: &str) -> impl Iterator<Item = Found<'_>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut key = "";
    std::iter::from_fn(move || {
        loop {
            let start = at + memchr::memchr(b'"', bytes.get(at..)?)? + 1;
            let end = string_end(bytes, start)?;
            at = end + 1;
            let space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            let after = at + bytes[at..].iter().take_while(space).count();
            if bytes.get(after) != Some(&b':') {
                let inner = start..end;
                return Some(Found { inner, key });
            }
            key = &text[start..end];
        }
    })
}

/// Where the quote stands that ends the string of which `at` is inside.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// `text`, valid JSON, in at most `max` bytes: its longest strings are cut, and say so. `None` where that is not enough.
pub fn bound(text: &str, max: usize) -> Option<String> {
    let lengths: Vec<usize> = values(text)
        .filter(|found| is_cut(found, SHORT))
        .map(|found| found.inner.len())
        .collect();
    let total = |level: usize| {
        let gone = lengths
            .iter()
            .map(|length| length.saturating_sub(level + SAID));
        text.len() - gone.sum::<usize>()
    };
    if total(SHORT) > max {
        return None;
    }
    let (mut fits, mut over) = (SHORT, max + 1);
    while over - fits > 1 {
        let middle = fits.midpoint(over);
        if total(middle) <= max {
            fits = middle;
        } else {
            over = middle;
        }
    }
    Some(cut(text, fits))
}

fn is_cut(found: &Found<'_>, level: usize) -> bool {
    found.inner.len() > level + SAID && !WHOLE.contains(&found.key)
}

fn cut(text: &str, level: usize) -> String {
    let mut out = String::with_capacity(text.len().min(level * 2));
    let mut at = 0;
    for found in values(text).filter(|found| is_cut(found, level)) {
        let inner = &text[found.inner.clone()];
        let kept = boundary(inner, level);
        out.push_str(&text[at..found.inner.start + kept]);
        out.push_str(&format!("… [cut {} bytes; incomplete]", inner.len() - kept));
        at = found.inner.end;
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_longest_strings_are_cut() {
        let text = json!({
            "code": -32000, "message": "x".repeat(1000), "data": ["y".repeat(500), "short"], "url": "u".repeat(300)
        });
        let bounded = bound(&text.to_string(), 1200).expect("it fits");
        assert!(bounded.len() <= 1200, "{}", bounded.len());
        let read: Value = serde_json::from_str(&bounded).expect("JSON");
        assert_eq!(read["code"], -32000);
        assert_eq!(read["url"], "u".repeat(300));
        assert_eq!(read["data"][1], "short");
        let message = read["message"].as_str().expect("a string");
        let (kept, said) = message.split_once('…').expect("a mark");
        assert_eq!(
            said,
            format!(" [cut {} bytes; incomplete]", 1000 - kept.len())
        );
    }

    #[test]
    fn what_cannot_be_cut_enough_is_not_cut() {
        assert_eq!(
            bound(&json!({ "url": "u".repeat(300) }).to_string(), 200),
            None
        );
        assert_eq!(bound(&json!(vec![1; 300]).to_string(), 200), None);
        assert_eq!(bound("{}", 200).as_deref(), Some("{}"));
    }

    #[test]
    fn keys_are_no_values() {
        let found: Vec<_> = values(r#"{"a" : "1\"","b":["2",{"c":3}], "d":"4"}"#)
            .map(|found| found.key)
            .collect();
        assert_eq!(found, ["a", "b", "d"]);
    }

    proptest! {
        #[test]
        fn whatever_is_cut_is_json_and_fits(texts in proptest::collection::vec(r#"[a\\"é😀\n]{0,400}"#, 0..5), max in 300usize..2000) {
            let text = json!({ "message": texts }).to_string();
            if let Some(bounded) = bound(&text, max) {
                prop_assert!(bounded.len() <= max.max(text.len().min(max)));
                serde_json::from_str::<Value>(&bounded).expect("JSON");
            }
        }
    }
}
