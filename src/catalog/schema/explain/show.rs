//! Values and names, shortened and made visible.

use serde_json::Value;

/// Characters of a scalar that are shown.
const SCALAR: usize = 40;
/// Characters of a path that are shown, from its end.
const PATH: usize = 120;
/// Characters of a name that are shown.
const NAME: usize = 60;
/// Allowed values that are listed.
const VALUES: usize = 10;

/// Where an error is: a JSON Pointer (RFC 6901), in words where it is empty.
pub(super) fn path(pointer: &str) -> String {
    if pointer.is_empty() {
        return "the arguments".to_owned();
    }
    let length = pointer.chars().count();
    if length <= PATH {
        return format!("`{}`", shown(pointer, PATH));
    }
    let end: String = pointer.chars().skip(length - PATH).collect();
    format!("`…{}`", shown(&end, PATH))
}

/// The name of a member.
pub(super) fn name(name: &str) -> String {
    format!("`{}`", shown(name, NAME))
}

/// What was found: the type, and the value where it is a scalar.
pub(super) fn found(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value::Null) => "null".to_owned(),
        Some(Value::Bool(value)) => format!("the boolean {value}"),
        Some(Value::Number(number)) => format!("the number {}", shown(&number.to_string(), SCALAR)),
        Some(Value::String(text)) => format!("the string {}", string(text)),
        Some(Value::Array(items)) => format!("an array of {}", count(items.len(), "item")),
        Some(Value::Object(members)) => format!("an object of {}", count(members.len(), "member")),
    }
}

fn count(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// A value of the schema.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        Value::Array(_) | Value::Object(_) => shown(&value.to_string(), SCALAR),
        scalar => scalar.to_string(),
    }
}

/// Values of the schema, the first few.
pub(super) fn listed(values: &[Value]) -> String {
    let mut shown: Vec<String> = values.iter().take(VALUES).map(literal).collect();
    if values.len() > VALUES {
        shown.push(format!("{} more", values.len() - VALUES));
    }
    shown.join(", ")
}

/// A string in quotes.
fn string(text: &str) -> String {
    let cut = shown(text, SCALAR);
    let quoted = cut.replace('"', "\\\"");
    format!("\"{quoted}\"")
}

/// At most `max` characters of a text, those that nobody would see escaped.
pub(in crate::catalog::schema) fn shown(text: &str, max: usize) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    for c in chars.by_ref().take(max) {
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

/// Whether a character shows nothing, or changes how others show: controls, separators of lines, fillers, joiners, marks
/// of direction, selectors of variations, tags.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}
