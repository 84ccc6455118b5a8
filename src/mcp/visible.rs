//! Which characters a person who looks at a text would not see.

/// Controls, format characters, fillers, tags, variation selectors and private use: nothing that a viewer shows
/// (Unicode categories Cc, Cf, Zl, Zp, Co, and the default ignorable code points).
pub fn invisible(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{10ffff}')
}

/// Writes `character` as JSON does inside a string: as `\u` escapes, one for each unit of UTF-16, where it is
/// [`invisible`], else as it is.
pub fn escape_invisible(out: &mut String, character: char) {
    if !invisible(character) {
        return out.push(character);
    }
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for unit in character.encode_utf16(&mut [0; 2]) {
        out.push_str("\\u");
        for shift in [12, 8, 4, 0] {
            out.push(char::from(DIGITS[usize::from(*unit >> shift & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_written_out() {
        let shown = |text: &str| {
            let mut out = String::new();
            text.chars()
                .for_each(|character| escape_invisible(&mut out, character));
            out
        };
        assert_eq!(shown("é 中 😀"), "é 中 😀");
        assert_eq!(
            shown("a\u{200b}b\u{202e}\u{1b}[31m\u{e0041}"),
            "a\\u200bb\\u202e\\u001b[31m\\udb40\\udc41"
        );
    }
}
