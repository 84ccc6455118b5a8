//! Whether the elements of an array all differ.
//!
//! The validator's own way hashes them so that values that differ can be made to collide without end: `[[],1]` and `[1,[]]`
//! do, and numbers that are the same double. Here many are compared by a text that equal values have in common.

use std::{collections::HashSet, fmt::Write};

use serde_json::{Number, Value};

use super::{Look, PIECE};

/// Elements that are compared with each other, at most.
const PAIRED: usize = 15;

/// Whether no two of these elements are equal; what that takes is charged to the meter of `look`.
pub(super) fn is_unique(elements: &[Value], look: Look<'_>) -> bool {
    if elements.len() <= PAIRED {
        let mut rest = elements;
        while let Some((first, after)) = rest.split_first() {
            if after.iter().any(|other| look.at(first).equals(other)) {
                return false;
            }
            rest = after;
        }
        return true;
    }
    let mut seen = HashSet::new();
    elements.iter().all(|element| {
        let mut text = String::new();
        write(&mut text, look.at(element));
        seen.insert(text)
    })
}

/// Writes the text that equal values have in common: numbers without what spells them.
fn write(out: &mut String, look: Look<'_>) {
    look.spend(1);
    match look.value {
        Value::Number(of) => number(out, of),
        Value::String(text) => string(out, text, look),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(out, look.at(item));
                out.push(',');
            }
            out.push(']');
        }
        // In the order of their names.
        Value::Object(members) => {
            out.push('{');
            for (name, value) in members {
                string(out, name, look);
                write(out, look.at(value));
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) => put(out, format_args!("{}", look.value)),
    }
}

fn string(out: &mut String, text: &str, look: Look<'_>) {
    look.spend(text.len() / PIECE);
    put(out, format_args!("\"{}:{text}", text.len()));
}

fn number(out: &mut String, number: &Number) {
    match number.as_f64() {
        Some(0.0) => out.push('0'),
        Some(double) if number.is_f64() && double.fract() == 0.0 => {
            put(out, format_args!("{double:.0}"));
        }
        _ => put(out, format_args!("{number}")),
    }
}

/// Appends to a string, which does not fail.
fn put(out: &mut String, words: std::fmt::Arguments<'_>) {
    out.write_fmt(words).expect("a string takes all");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unique(text: &str) -> bool {
        let elements: Vec<Value> = serde_json::from_str(text).expect("JSON");
        let look = Look {
            value: &Value::Null,
            meter: None,
        };
        let few = is_unique(&elements, look);
        let mut many: Vec<Value> = (0..20)
            .map(|n| Value::from(format!("filler {n}")))
            .collect();
        many.extend(elements);
        assert_eq!(is_unique(&many, look), few, "{text}");
        few
    }

    #[test]
    fn equal_values_are_found_however_they_are_spelled() {
        for same in [
            "[1,1.0]",
            "[0,-0.0]",
            "[100,1e2]",
            "[18446744073709551615,18446744073709551615]",
            "[9007199254740992,9007199254740992.0]",
            r#"[{"a":1,"b":[2.0]},{"b":[2],"a":1e0}]"#,
            "[null,null]",
            r#"["a","a"]"#,
        ] {
            assert!(!unique(same), "{same}");
        }
        for differ in [
            "[]",
            "[1]",
            r#"[1,"1",true,null,[],{},"true","null","[]"]"#,
            "[18446744073709551615,18446744073709551614,1.8446744073709552e19]",
            "[9007199254740993,9007199254740992.0]",
            "[[[],1],[1,[]],[[1]],[[1,[]]],[[[]],1]]",
            r#"[{"a":"b"},{"a":"b","c":1},{"ab":""}]"#,
            r#"[["a,"],["a",""],["a","\"0:"]]"#,
            "[0.1,0.2]",
        ] {
            assert!(unique(differ), "{differ}");
        }
    }
}
