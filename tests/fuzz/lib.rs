//! What the targets share.

/// Splits an input into a document and the places where it is cut: the bytes of the first line are the lengths of its
/// pieces, one after another and again from the first; the rest is the document.
pub fn cut(input: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let end = input.iter().position(|byte| *byte == b'\n')?;
    let (lengths, document) = (&input[..end], &input[end + 1..]);
    let mut lengths = lengths.iter().map(|length| usize::from(*length)).cycle();
    let (mut pieces, mut rest) = (Vec::new(), document);
    while !rest.is_empty() {
        let length = lengths.next().unwrap_or(rest.len());
        let (piece, after) = rest.split_at(length.clamp(1, rest.len()));
        pieces.push(piece);
        rest = after;
    }
    Some((document, pieces))
}

/// The same as text.
pub fn first_line(input: &[u8]) -> Option<(&[u8], &str)> {
    let end = input.iter().position(|byte| *byte == b'\n')?;
    Some((&input[..end], std::str::from_utf8(&input[end + 1..]).ok()?))
}

/// Keys of a JSON text, counted in two ways.
pub mod keys {
    use serde_json::Value;

    /// How many are written: of what is not in a string, only a key is followed by a colon.
    pub fn written(text: &[u8]) -> usize {
        let (mut count, mut in_string, mut is_escaped) = (0, false, false);
        for byte in text {
            match (in_string, byte) {
                (true, _) if is_escaped => is_escaped = false,
                (true, b'\\') => is_escaped = true,
                (_, b'"') => in_string = !in_string,
                (false, b':') => count += 1,
                _ => {}
            }
        }
        count
    }

    /// How many objects hold, which hold each of theirs once.
    pub fn held(value: &Value) -> usize {
        match value {
            Value::Object(members) => members.len() + members.values().map(held).sum::<usize>(),
            Value::Array(items) => items.iter().map(held).sum(),
            _ => 0,
        }
    }
}
