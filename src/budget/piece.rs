//! Reading on: the texts of a result one after another, a piece at a time.
//!
//! Places are bytes of the result's JSON text, as the cut result names them. Base64 cannot be read on.

use std::ops::Range;

use super::{
    shape::{Form, Found, place, walk},
    written::{boundary, char_at, decode},
};

/// A piece of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it says.
    pub text: String,
    /// Where it begins; where it was asked for, or the next place at which there is a text.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Where to read on; `None` at the end.
    pub next: Option<usize>,
}

/// The piece of at most `length` bytes that begins at `offset`, which may lie anywhere.
pub fn piece(result: &str, form: Form, offset: usize, length: usize) -> Piece {
    let (mut found, mut after) = (None, None);
    let mut show = |text: Range<usize>| {
        if text.is_empty() || after.is_some() {
        } else if found.is_some() {
            after = Some(text.start);
        } else if text.end > offset {
            found = Some(text);
        }
    };
    // What cannot be read ends the result.
    let _faulty = walk(result, form, |part| match part {
        Found::Item(item) if !item.text.is_empty() => show(place(&item.text)),
        Found::Structured(whole) => show(whole),
        _ => {}
    });
    let Some(text) = found else {
        let end = result.len();
        return Piece {
            text: String::new(),
            start: end,
            end,
            next: None,
        };
    };
    cut(result, text, after, offset, length)
}

fn cut(
    result: &str,
    text: Range<usize>,
    after: Option<usize>,
    offset: usize,
    length: usize,
) -> Piece {
    let inner = &result[text.clone()];
    let start = boundary(inner, offset.saturating_sub(text.start));
    let mut end = boundary(inner, inner.len().min(start.saturating_add(length)));
    if end <= start {
        end = char_at(inner, start).map_or(inner.len(), |(_, end)| end);
    }
    // Structure is JSON and stays as it is written.
    let is_string = text.start > 0 && result[..text.start].ends_with('"');
    let piece = &inner[start..end];
    Piece {
        text: if is_string {
            decode(piece)
        } else {
            piece.to_owned()
        },
        start: text.start + start,
        end: text.start + end,
        next: if end < inner.len() {
            Some(text.start + end)
        } else {
            after
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const RESULT: &str = r#"{"content":[{"type":"text","text":"a\n\u00e9b"},{"type":"image","data":"QUJD","mimeType":"i/p"},{"type":"text","text":""},{"type":"resource","resource":{"uri":"u","text":"😀z"}}],"structuredContent":{"k":[1,2]}}"#;

    #[test]
    fn texts_are_read_one_after_another() {
        let mut said = Vec::new();
        let mut next = Some(0);
        while let Some(offset) = next {
            let piece = piece(RESULT, Form::Tool, offset, 7);
            said.push(piece.text);
            next = piece.next;
        }
        assert_eq!(said, ["a\n", "éb", "😀z", r#"{"k":[1"#, ",2]}"]);
    }

    #[test]
    fn a_place_inside_a_character_begins_it() {
        let text = RESULT.find("u00e9").expect("an escape");
        let found = piece(RESULT, Form::Tool, text, 1);
        assert_eq!(
            (&*found.text, found.start, found.end),
            ("é", text - 1, text + 5)
        );
        let end = piece(RESULT, Form::Tool, usize::MAX, 10);
        assert_eq!((&*end.text, end.next, end.start), ("", None, RESULT.len()));
    }

    proptest! {
        #[test]
        fn all_pieces_together_are_all_texts(texts in proptest::collection::vec(r#"[a\\"é😀\n]{0,40}"#, 0..4), length in 0usize..40) {
            let blocks: Vec<_> = texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
            let result = json!({ "content": blocks }).to_string();
            let (mut said, mut next) = (String::new(), Some(0));
            while let Some(offset) = next {
                let piece = piece(&result, Form::Tool, offset, length);
                said.push_str(&piece.text);
                prop_assert!(piece.next.is_none_or(|next| next > offset));
                next = piece.next;
            }
            prop_assert_eq!(said, texts.concat());
        }

        #[test]
        fn wherever_a_piece_begins_it_is_of_the_text(text in r#"[a\\"é😀\n]{1,40}"#, ascii: bool, offset in 0usize..600, length in 0usize..40) {
            let mut result = json!({ "content": [{ "type": "text", "text": text }] }).to_string();
            if ascii {
                let escaped = |unit: u16| match u8::try_from(unit) {
                    Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
                    _ => format!("\\u{unit:04x}"),
                };
                result = result.encode_utf16().map(escaped).collect();
            }
            let piece = piece(&result, Form::Tool, offset, length);
            prop_assert!(text.contains(&piece.text), "{:?}", piece.text);
            prop_assert!(piece.end >= piece.start && piece.end <= result.len());
            prop_assert!(piece.next.is_none_or(|next| next > offset));
        }
    }
}
