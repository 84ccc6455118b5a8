//! Replacing parts of a message while every other byte stays.

use std::ops::Range;

/// `body` with the bytes of each range replaced; the ranges lie in order and do not overlap.
pub fn splice(body: &[u8], edits: &[(Range<usize>, &[u8])]) -> Vec<u8> {
    let added: usize = edits.iter().map(|(_, new)| new.len()).sum();
    let mut out = Vec::with_capacity(body.len() + added);
    let mut at = 0;
    for (range, new) in edits {
        out.extend_from_slice(&body[at..range.start]);
        out.extend_from_slice(new);
        at = range.end;
    }
    out.extend_from_slice(&body[at..]);
    out
}

/// What to cut so that an object loses a member and exactly one comma with it, if there is one. `member` reaches from the
/// opening quote of the key to the end of the value, and may also be a run of neighbours; `body` is valid JSON.
///
/// The cuts of two neighbours may share a comma: cut them as one run.
pub fn member_cut(body: &[u8], member: Range<usize>) -> Range<usize> {
    let space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let after = body[member.end..].iter().take_while(space).count();
    if body.get(member.end + after) == Some(&b',') {
        return member.start..member.end + after + 1;
    }
    let before = body[..member.start].iter().rev().take_while(space).count();
    let start = member.start - before;
    if body[..start].ends_with(b",") {
        return start - 1..member.end;
    }
    member
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// `text`, in which one member is marked by `«` and `»`, without it.
    fn without(text: &str) -> String {
        let start = text.find('«').expect("a start");
        let text = text.replacen('«', "", 1);
        let end = text.find('»').expect("an end");
        let text = text.replacen('»', "", 1);
        let cut = member_cut(text.as_bytes(), start..end);
        String::from_utf8(splice(text.as_bytes(), &[(cut, b"")])).expect("text")
    }

    #[test]
    fn one_comma_goes_with_a_member() {
        for (text, left) in [
            (r#"{«"a":1»}"#, "{}"),
            ("{ «\"a\": 1» }", "{  }"),
            (r#"{«"a":1»,"b":2}"#, r#"{"b":2}"#),
            (r#"{"a":1,«"b":2»,"c":3}"#, r#"{"a":1,"c":3}"#),
            (r#"{"a":1,«"b":2»}"#, r#"{"a":1}"#),
            ("{\n \"a\": 1 ,\n «\"b\": 2»\n}", "{\n \"a\": 1 \n}"),
            ("{\n «\"a\": 1» ,\n \"b\": 2\n}", "{\n \n \"b\": 2\n}"),
            (r#"[{«"a":","»},{"b":2}]"#, r#"[{},{"b":2}]"#),
            (r#"{"a":1,«"b":2,"c":3»}"#, r#"{"a":1}"#),
        ] {
            assert_eq!(without(text), left, "{text}");
        }
    }

    fn space() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec!["", "", " ", "\n\t", " \r\n"])
    }

    fn value() -> impl Strategy<Value = &'static str> {
        let values = [
            "1",
            "null",
            "\",\"",
            "\"}\"",
            "\"\\\\\\\",\"",
            "[ 1 , 2 ]",
            "{}",
            "{\"a\" : [ ] , \"b\":1}",
        ];
        prop::sample::select(values.to_vec())
    }

    proptest! {
        #[test]
        fn the_rest_of_the_object_stays(
            parts in proptest::collection::vec((space(), space(), space(), value(), space()), 1..6),
            first: prop::sample::Index,
            last: prop::sample::Index,
        ) {
            let first = first.index(parts.len());
            let last = first + last.index(parts.len() - first);
            let mut text = "{\"k0\":[{".to_owned();
            let mut expected = serde_json::Map::new();
            let mut member = 0..0;
            for (n, (before, inside, between, value, after)) in parts.iter().enumerate() {
                text += if n > 0 { "," } else { "" };
                text += before;
                if n == first {
                    member.start = text.len();
                }
                text += &format!("\"k{n}\"{inside}:{between}{value}");
                if n == last {
                    member.end = text.len();
                }
                text += after;
                if !(first..=last).contains(&n) {
                    expected.insert(format!("k{n}"), serde_json::from_str(value).expect("JSON"));
                }
            }
            text += "},1],\"k1\":2}";
            let cut = member_cut(text.as_bytes(), member);
            let left = splice(text.as_bytes(), &[(cut, b"")]);
            let left: Value = serde_json::from_slice(&left).expect("JSON");
            prop_assert_eq!(left, serde_json::json!({ "k0": [expected, 1], "k1": 2 }));
        }
    }
}
