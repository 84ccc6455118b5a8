//! What values take in memory.

use serde_json::Value;

/// What a value takes beside its text, in bytes and roughly.
const VALUE_BYTES: usize = 64;

/// What a copy of a value takes, in bytes and roughly.
pub(super) fn in_memory(value: &Value) -> usize {
    let inside: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(in_memory).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| name.len() + in_memory(value))
            .sum(),
        _ => 0,
    };
    VALUE_BYTES + inside
}

/// The bytes of the longest path to a value inside of this one.
pub(super) fn longest_path(value: &Value) -> usize {
    match value {
        Value::Array(items) => items
            .iter()
            .map(|item| 8 + longest_path(item))
            .max()
            .unwrap_or(0),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| 1 + name.len() + longest_path(value))
            .max()
            .unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sizes_are_of_all_that_is_inside() {
        assert_eq!(in_memory(&json!(1)), 64);
        assert_eq!(in_memory(&json!({ "ab": ["c", null] })), 4 * 64 + 3);
        assert_eq!(longest_path(&json!({ "abcd": 1, "b": [[1]] })), 18);
        assert_eq!(longest_path(&json!("text")), 0);
    }
}
