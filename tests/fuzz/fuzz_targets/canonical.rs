//! The canonical form is the same however a value is written, and is canonical itself.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, value::RawValue};
use tollgate::mcp::canonical::{canonical, digest};
use tollgate_fuzz::keys;

fuzz_target!(|text: &[u8]| {
    let Ok(form) = canonical(text) else {
        assert!(digest(text).is_err());
        return;
    };
    assert!(form.len() <= text.len());
    assert_eq!(canonical(&form).as_ref(), Ok(&form));
    let value: Value = serde_json::from_slice(text).expect("JSON");
    assert_eq!(serde_json::from_slice::<Value>(&form).expect("JSON"), value);
    assert_eq!(
        keys::written(text),
        keys::held(&value),
        "a key stands twice"
    );
    let whole: &RawValue = serde_json::from_slice(text).expect("JSON");
    let mut other = String::new();
    rewrite(whole, &mut other);
    assert_eq!(canonical(other.as_bytes()).as_ref(), Ok(&form), "{other}");
    assert_eq!(digest(other.as_bytes()), digest(text));
});

/// Writes a value with its keys in the opposite order, white space, and escapes where none are needed.
fn rewrite(value: &RawValue, out: &mut String) {
    let text = value.get();
    match text.as_bytes()[0] {
        b'{' => {
            let members: BTreeMap<String, &RawValue> =
                serde_json::from_str(text).expect("an object");
            out.push_str("{ ");
            for (at, (key, value)) in members.iter().rev().enumerate() {
                out.push_str(if at > 0 { " ,\n" } else { "" });
                string(key, out);
                out.push_str("\t: ");
                rewrite(value, out);
            }
            out.push('}');
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).expect("an array");
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "\r, " } else { "" });
                rewrite(item, out);
            }
            out.push_str(" ]");
        }
        b'"' => string(
            &serde_json::from_str::<String>(text).expect("a string"),
            out,
        ),
        _ => out.push_str(text),
    }
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for unit in text.encode_utf16() {
        out.push_str(&format!("\\u{unit:04X}"));
    }
    out.push('"');
}
