//! Texts of any shape (errors, notices, questions): their longest strings are cut until the whole is short enough.

use std::{ops::Range, sync::LazyLock};

use memchr::memmem::Finder;

use super::{hidden, written::boundary};
use crate::mcp::scan::{Rules, ScanError, Scanner};

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

/// What a text is, and so which of its strings come back as they were given, or nobody knows them: what is hidden in them
/// stays. Elsewhere the same words are anybody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// A whole notification or request.
    Message,
    /// A result.
    Result,
    /// An error.
    Error,
}

impl Text {
    /// The keys that lead to these strings.
    fn given(self) -> &'static [&'static [&'static str]] {
        const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
        match self {
            Self::Message => &[
                &["params", "progressToken"],
                &["params", "requestId"],
                &["params", "_meta", "progressToken"],
                &["params", "_meta", SUBSCRIPTION],
            ],
            Self::Result => &[&["requestState"], &["nextCursor"], &["_meta", SUBSCRIPTION]],
            Self::Error => &[],
        }
    }
}

/// The key of what a notice of progress says in words (MCP 2025-06-18, progress).
const MESSAGE: &[u8] = br#""message""#;

/// No cutting of strings made a text short enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// `text`, valid JSON of any shape, in at most `max` bytes and with nothing hidden in it; `None` where it is so already.
///
/// # Errors
///
/// [`TooLong`].
pub fn bounded(kind: Text, text: &str, max: usize) -> Result<Option<String>, TooLong> {
    let short = text.len() <= max;
    if short && hidden::find(text, 0).is_none() {
        return Ok(None);
    }
    let cut = match short {
        true => text.to_owned(),
        false => bound(text, max).ok_or(TooLong)?,
    };
    let given = given(&cut, kind.given());
    let shown = clean(&cut, &given, |part| hidden::reveal(part, max));
    Ok(Some(match shown {
        Some(shown) if shown.len() <= max => shown,
        _ => clean(&cut, &given, |part| Some(hidden::mask(part))).ok_or(TooLong)?,
    }))
}

/// Bytes of what notices of progress say in words, at most.
pub fn spoken(notices: &[u8]) -> usize {
    // A key may be spelled with escapes, and so may what looks like one be part of a string. Hardly ever is there any.
    if memchr::memchr(b'\\', notices).is_some() {
        let values = values(std::str::from_utf8(notices).unwrap_or_default());
        let spoken = values.filter(|found| found.key == "message" || found.key.contains('\\'));
        return spoken.map(|found| found.inner.len()).sum();
    }
    static KEY: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(MESSAGE));
    let keys = KEY.find_iter(notices);
    keys.map(|at| plain_value(&notices[at + MESSAGE.len()..]))
        .sum()
}

/// The length of the string that is the value of the key before `rest`, which holds no escape.
fn plain_value(rest: &[u8]) -> usize {
    let value = rest.trim_ascii_start().strip_prefix(b":");
    let inner = value.and_then(|value| value.trim_ascii_start().strip_prefix(b"\""));
    let end = inner.and_then(|inner| memchr::memchr(b'"', inner));
    end.unwrap_or_default()
}

/// A notice of progress that says nothing in words.
pub fn muted(notice: &str) -> String {
    let mut out = String::with_capacity(notice.len());
    let mut at = 0;
    for inner in given(notice, &[&["params", "message"]]) {
        out.push_str(&notice[at..inner.start]);
        at = inner.end;
    }
    out.push_str(&notice[at..]);
    out
}

/// `text` cleaned but for what is `given`.
fn clean(
    text: &str,
    given: &[Range<usize>],
    clean: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for inner in given {
        out.push_str(&clean(&text[at..inner.start])?);
        out.push_str(&text[inner.clone()]);
        at = inner.end;
    }
    out.push_str(&clean(&text[at..])?);
    Some(out)
}

/// Where the strings stand to which `paths` lead, without their quotes, in order.
fn given(text: &str, paths: &[&[&str]]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // What cannot be read is given by nobody.
    let _read = Scanner::new(text.as_bytes(), Rules::Loose)
        .and_then(|mut scanner| follow(&mut scanner, paths, &mut found));
    found
}

fn follow(
    scanner: &mut Scanner<'_>,
    paths: &[&[&str]],
    found: &mut Vec<Range<usize>>,
) -> Result<(), ScanError> {
    scanner.enter_object()?;
    while let Some(key) = scanner.key()? {
        let paths = paths.iter().filter_map(|path| path.split_first());
        let on: Vec<&[&str]> = paths
            .filter_map(|(first, rest)| (**first == *key).then_some(rest))
            .collect();
        match scanner.peek() {
            Some(b'{') if on.iter().any(|path| !path.is_empty()) => follow(scanner, &on, found)?,
            Some(b'"') if on.iter().any(|path| path.is_empty()) => {
                let place = scanner.value()?.range();
                found.push(place.start + 1..place.end - 1);
            }
            _ => drop(scanner.value()?),
        }
    }
    Ok(())
}

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
fn bound(text: &str, max: usize) -> Option<String> {
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
    fn what_is_given_back_stays_as_it_is() {
        let text = |sign: &str, state: &str| {
            format!(
                r#"{{"requestState":"{state}","message":"a{sign}b","_meta":{{"io.modelcontextprotocol/subscriptionId":"{state}"}}}}"#
            )
        };
        let result = |text: &str, max| bounded(Text::Result, text, max);
        let hidden = text("\u{200b}", r"\u200b");
        let shown = text(r"\\u{200B}", r"\u200b");
        assert_eq!(result(&hidden, 200), Ok(Some(shown)));
        assert_eq!(
            result(&hidden, hidden.len()),
            Ok(Some(text("?", r"\u200b")))
        );
        assert_eq!(result(&text("x", "y"), 200), Ok(None));
        assert_eq!(result(&text("x", &"y".repeat(300)), 200), Err(TooLong));
    }

    #[test]
    fn the_same_words_elsewhere_are_anybodys() {
        for (kind, text) in [
            (Text::Error, r#"{"message":"","requestState":"X"}"#),
            (Text::Error, r#"{"data":{"progressToken":"X"}}"#),
            (Text::Result, r#"{"a":{"requestState":"X"}}"#),
            (Text::Result, r#"{"requestState":["X"]}"#),
            (Text::Result, r#"[{"requestState":"1"},"X"]"#),
            (Text::Message, r#"{"params":{"data":{"requestId":"X"}}}"#),
            (Text::Message, r#"{"progressToken":"X"}"#),
        ] {
            let hidden = text.replace('X', "\u{200b}");
            let shown = text.replace('X', r"\\u{200B}");
            assert_eq!(bounded(kind, &hidden, 200), Ok(Some(shown)), "{text}");
        }
        let told = r#"{"params":{"progressToken":"\u200b","_meta":{"progressToken":"\u200b"}},"x":"\u200b"}"#;
        let shown = r#"{"params":{"progressToken":"\u200b","_meta":{"progressToken":"\u200b"}},"x":"\\u{200B}"}"#;
        assert_eq!(
            bounded(Text::Message, told, 200),
            Ok(Some(shown.to_owned()))
        );
    }

    #[test]
    fn what_progress_says_counts_and_goes() {
        for (notice, bytes, told) in [
            (r#"{"params":{"progress":1,"total":2}}"#, 0, None),
            (r#"{"params":{"progressToken":"message","a":7}}"#, 0, None),
            (r#"{"params":{"message":null}}"#, 0, None),
            (
                "{\"params\":{\"message\" :\t\"four\"}}",
                4,
                Some("{\"params\":{\"message\" :\t\"\"}}"),
            ),
            (
                r#"{"params":{"message":"four","progressToken":"t\u0041"}}"#,
                4,
                Some(r#"{"params":{"message":"","progressToken":"t\u0041"}}"#),
            ),
            (
                r#"{"params":{"mess\u0061ge":"é\n","progress":1}}"#,
                4,
                Some(r#"{"params":{"mess\u0061ge":"","progress":1}}"#),
            ),
        ] {
            assert_eq!(spoken(notice.as_bytes()), bytes, "{notice}");
            assert_eq!(muted(notice), told.unwrap_or(notice));
        }
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
