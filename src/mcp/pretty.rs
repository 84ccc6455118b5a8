//! JSON for people: one member or element a line, and nothing that a viewer would not show.

use super::visible::escape_invisible;

/// Appends `canonical`, a text in the [canonical form](mod@super::canonical), with two spaces for each level, of which
/// the first line has `level` already. What is [invisible](super::visible::invisible) is escaped, so that reading the
/// text again gives the same canonical form.
pub fn pretty(canonical: &str, level: usize, out: &mut String) {
    let mut level = level;
    let mut characters = canonical.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                out.push('"');
                string(&mut characters, out);
            }
            '{' | '[' => {
                out.push(character);
                if let Some(close) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    level += 1;
                    line(level, out);
                }
            }
            '}' | ']' => {
                level = level.saturating_sub(1);
                line(level, out);
                out.push(character);
            }
            ',' => {
                out.push(',');
                line(level, out);
            }
            ':' => out.push_str(": "),
            scalar => out.push(scalar),
        }
    }
}

/// The rest of a string, its closing quote included.
fn string(characters: &mut impl Iterator<Item = char>, out: &mut String) {
    while let Some(character) = characters.next() {
        escape_invisible(out, character);
        match character {
            '"' => return,
            '\\' => out.extend(characters.next()),
            _ => {}
        }
    }
}

fn line(level: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", level));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::canonical::canonical;

    fn shown(text: &str) -> String {
        let canonical = canonical(text.as_bytes()).expect("JSON");
        let mut out = String::new();
        pretty(std::str::from_utf8(&canonical).expect("UTF-8"), 0, &mut out);
        out
    }

    #[test]
    fn one_member_a_line() {
        assert_eq!(
            shown(r#"{"b":[1,{"x":1.0}],"a":{},"c":[],"d":"x, {y}: \"z\\"}"#),
            r#"{
  "a": {},
  "b": [
    1,
    {
      "x": 1.0
    }
  ],
  "c": [],
  "d": "x, {y}: \"z\\"
}"#
        );
        assert_eq!(shown("\"a\u{200b}\u{7f}\""), r#""a\u200b\u007f""#);
    }

    proptest::proptest! {
        #[test]
        fn reading_it_again_gives_the_same(text in "\\PC*|[\\x00-\\x7f\u{80}-\u{ffff}]*", number in -1e9..1e9) {
            let value = serde_json::json!({"text": [text, {"number": number, &text: null}], "": []});
            let canonical_text = canonical(value.to_string().as_bytes());
            proptest::prop_assume!(canonical_text.is_ok());
            let canonical_text = canonical_text.expect("checked");
            let mut out = String::new();
            pretty(std::str::from_utf8(&canonical_text).expect("UTF-8"), 3, &mut out);
            proptest::prop_assert_eq!(canonical(out.as_bytes()).expect("JSON"), canonical_text);
        }
    }
}
