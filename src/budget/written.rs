//! The characters of JSON strings as they are written, be it by themselves or as escapes.
//!
//! Texts are valid JSON, or what stands between the quotes of a string: a backslash always belongs to an escape.

/// The character that is written at `at`, and where it ends. Half a surrogate pair stands for U+FFFD; `None` at the end.
pub(super) fn char_at(text: &str, at: usize) -> Option<(char, usize)> {
    let bytes = text.as_bytes();
    if bytes.get(at) != Some(&b'\\') {
        let found = text.get(at..)?.chars().next()?;
        return Some((found, at + found.len_utf8()));
    }
    let plain = match bytes.get(at + 1)? {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(text, at),
        other => char::from(*other),
    };
    Some((plain, at + 2))
}

fn unicode(text: &str, at: usize) -> Option<(char, usize)> {
    let unit = unit(text, at)?;
    let end = at + 6;
    if is_high(unit)
        && let Some(low) = self::unit(text, end).filter(|low| is_low(*low))
    {
        let code = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        return Some((char::from_u32(code)?, end + 6));
    }
    let found = char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((found, end))
}

/// The UTF-16 unit of a `\u` escape at `at`.
fn unit(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

fn is_high(unit: u32) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

fn is_low(unit: u32) -> bool {
    (0xDC00..0xE000).contains(&unit)
}

/// The character that ends at `at`, which lies between two.
pub(super) fn char_before(text: &str, at: usize) -> Option<char> {
    let start = boundary(text, at.checked_sub(1)?);
    char_at(text, start).map(|(found, _)| found)
}

/// The last place up to `at` that lies between two characters: never inside one, an escape, or a surrogate pair.
pub(super) fn boundary(text: &str, at: usize) -> usize {
    let mut at = text.floor_char_boundary(at);
    let bytes = text.as_bytes();
    let near = &bytes[at.saturating_sub(5)..at];
    if let Some(back) = near.iter().rev().position(|byte| *byte == b'\\') {
        let escape = at - 1 - back;
        let length = match bytes.get(escape + 1) {
            Some(b'u') => 6,
            _ => 2,
        };
        if begins_escape(bytes, escape) && escape + length > at {
            at = escape;
        }
    }
    let Some(before) = at.checked_sub(6) else {
        return at;
    };
    let halves = unit(text, before).is_some_and(is_high) && unit(text, at).is_some_and(is_low);
    if halves && begins_escape(bytes, before) {
        return before;
    }
    at
}

/// Whether the backslash at `at` begins an escape: it is not the second half of `\\`.
pub(super) fn begins_escape(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].iter().rev();
    before.take_while(|byte| **byte == b'\\').count() % 2 == 0
}

/// What the inside of a string stands for.
pub(super) fn decode(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut at = 0;
    while let Some((found, end)) = char_at(inner, at) {
        out.push(found);
        at = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_are_never_inside_a_character() {
        for (text, at, expected) in [
            ("aé", 2, 1),
            ("aé", 3, 3),
            (r"a\nb", 2, 1),
            (r"a\nb", 3, 3),
            (r"a\u00e9b", 6, 1),
            (r"a\u00e9b", 7, 7),
            (r"\\n", 1, 0),
            (r"\\n", 2, 2),
            (r"\\\n", 3, 2),
            (r"\\u00e9", 5, 5),
            (r"\ud83d\ude00", 6, 0),
            (r"\ud83d\ude00", 8, 0),
            (r"\ud83d\ude00", 12, 12),
            (r"\\ud83d\ude00", 7, 7),
            ("", 0, 0),
            ("ab", 9, 2),
        ] {
            assert_eq!(boundary(text, at), expected, "{text} {at}");
        }
    }

    #[test]
    fn characters_are_found_from_both_sides() {
        assert_eq!(char_at(r"\ud83d\ude00!", 0), Some(('😀', 12)));
        assert_eq!(char_at(r"\ud83d!", 0), Some(('\u{fffd}', 6)));
        assert_eq!(char_before(r"\ud83d\ude00", 12), Some('😀'));
        assert_eq!(char_before("x\u{200d}y", 4), Some('\u{200d}'));
        assert_eq!(char_before(r"\\", 2), Some('\\'));
        assert_eq!(char_before("", 0), None);
        assert_eq!(decode(r#"a\"\u0041\/é"#), "a\"A/é");
    }

    proptest! {
        #[test]
        fn pieces_of_a_text_make_the_text(text in r#"[a-c\\"\n\u{200d}é😀]{0,12}"#, ascii: bool, at in 0usize..80) {
            let mut written = serde_json::to_string(&text).expect("a string");
            if ascii {
                let units = written.encode_utf16().map(|unit| match u8::try_from(unit) {
                    Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
                    _ => format!("\\u{unit:04x}"),
                });
                written = units.collect();
            }
            let inner = &written[1..written.len() - 1];
            let at = boundary(inner, at);
            let both = decode(&inner[..at]) + &decode(&inner[at..]);
            prop_assert_eq!(both, text);
        }
    }
}
