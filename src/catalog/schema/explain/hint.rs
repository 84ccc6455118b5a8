//! Mistakes that models make often, named as such; nothing is ever taken for what was meant.

use jsonschema::{
    JsonType,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde::de::IgnoredAny;
use serde_json::Value;

/// Known names that an unknown one is compared with, at most.
const MAX_KNOWN: usize = 1000;
/// The longest names that are compared, in bytes.
const MAX_NAME: usize = 64;

/// What to do about a value of the wrong type, as a clause that ends a sentence; empty where there is nothing to say.
pub(super) fn of(kind: &Kind, value: Option<&Value>) -> &'static str {
    let (Kind::Type { kind }, Some(Value::String(text))) = (kind, value) else {
        return "";
    };
    match kind {
        TypeKind::Single(one) => of_string(text, &[*one]),
        TypeKind::Multiple(several) => of_string(text, &several.iter().collect::<Vec<_>>()),
    }
}

/// The same for a string where one of these types is due.
pub(super) fn of_string(text: &str, due: &[JsonType]) -> &'static str {
    let inner = text.trim();
    let is_json = || serde_json::from_str::<IgnoredAny>(inner).is_ok();
    if due.contains(&JsonType::Object) && inner.starts_with('{') && is_json() {
        return "; this is a string of JSON: pass the object itself";
    }
    if due.contains(&JsonType::Array) && inner.starts_with('[') && is_json() {
        return "; this is a string of JSON: pass the array itself";
    }
    let number = due.contains(&JsonType::Number) || due.contains(&JsonType::Integer);
    let is_number = || inner.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    if number && is_number() && is_json() {
        return "; this is a number in a string: pass the number itself";
    }
    let is_boolean = ["true", "false"]
        .iter()
        .any(|word| inner.eq_ignore_ascii_case(word));
    if due.contains(&JsonType::Boolean) && is_boolean {
        return "; this is a boolean in a string: pass true or false itself";
    }
    ""
}

/// The known name that an unknown one is most like, if any is like it.
pub(super) fn nearest<'k>(unknown: &str, known: &[&'k str]) -> Option<&'k str> {
    if unknown.len() > MAX_NAME {
        return None;
    }
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    let unknown = plain(unknown);
    let allowed = unknown.chars().count().div_ceil(4).min(3);
    known
        .iter()
        .take(MAX_KNOWN)
        .filter(|name| name.len() <= MAX_NAME)
        .map(|name| (distance(&unknown, &plain(name)), *name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many characters have to be put in, taken out or replaced to make one of the other (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (to, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[to + 1];
            row[to + 1] = replaced.min(diagonal + 1).min(row[to] + 1);
        }
    }
    row[right.len()]
}
