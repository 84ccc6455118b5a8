use std::iter;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn text(text: &str) -> String {
    let canonical = canonical(text.as_bytes()).expect("strict JSON");
    String::from_utf8(canonical).expect("UTF-8")
}

#[test]
fn spellings_of_one_value_have_one_form() {
    for (spelled, form) in [
        ("null", "null"),
        (" [ true ,\tfalse ]\r\n", "[true,false]"),
        ("{ }", "{}"),
        ("[ ]", "[]"),
        (r#"{"b":1,"a":2}"#, r#"{"a":2,"b":1}"#),
        (
            r#"{"b":{"d":[],"c":{}},"a":[{"z":1,"y":2}]}"#,
            r#"{"a":[{"y":2,"z":1}],"b":{"c":{},"d":[]}}"#,
        ),
        (r#"{"\u0062":1,"a":2}"#, r#"{"a":2,"b":1}"#),
        (
            r#"{"a1":1,"a":2,"":3,"A":4}"#,
            r#"{"":3,"A":4,"a":2,"a1":1}"#,
        ),
        (
            r#"{"\n":1,"\t":2,"\"":3,"!":4}"#,
            r#"{"\t":2,"\n":1,"!":4,"\"":3}"#,
        ),
        // Order of UTF-8, not of UTF-16: U+FFFD comes before U+1F600.
        (
            r#"{"\ud83d\ude00":1,"\ufffd":2}"#,
            "{\"\u{fffd}\":2,\"\u{1f600}\":1}",
        ),
        (r#""\u0061\/\u002F\u00e9\u00E9""#, "\"a//\u{e9}\u{e9}\""),
        (
            r#""\u0022\u005c\u0008\u0009\u000a\u000c\u000d""#,
            r#""\"\\\b\t\n\f\r""#,
        ),
        (r#""\u0000\u001F\u007f""#, "\"\\u0000\\u001f\u{7f}\""),
        (
            "[1,1.0,1e0,1E0,-0,0,0.10,1e-400]",
            "[1,1.0,1e0,1E0,-0,0,0.10,1e-400]",
        ),
    ] {
        assert_eq!(text(spelled), form, "{spelled}");
        assert_eq!(text(form), form);
    }
}

/// Digests are kept over versions, so these never change. They were computed with another implementation of SHA-256.
#[test]
fn digests_stay() {
    for (spelled, form) in [
        (
            "{}",
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        ),
        (r#"{"zone": "UTC", "at": [1, 2.50]}"#, DIGEST),
    ] {
        let digest = digest(spelled.as_bytes()).expect("strict JSON");
        assert_eq!(crate::id::hex(&digest), form, "{spelled}");
    }
}

const DIGEST: &str = "65a3c73efa784828d42e2c999360e11e274cd64201f3c0b6062f3259f0889037";

#[test]
fn what_readers_disagree_about_has_no_form() {
    for (text, error) in [
        (r#"{"a":1,"\u0061":2}"#, ScanError::DuplicateKey { at: 15 }),
        (r#"["\ud800"]"#, ScanError::LoneSurrogate { at: 9 }),
        (r#"{"\udc00":1}"#, ScanError::LoneSurrogate { at: 9 }),
        ("1e999", ScanError::NumberRange { at: 0 }),
        (
            "1 2",
            ScanError::Syntax {
                at: 2,
                expected: "the end of the document",
            },
        ),
        (
            "{\"a\":}",
            ScanError::Syntax {
                at: 5,
                expected: "a value",
            },
        ),
    ] {
        assert_eq!(canonical(text.as_bytes()), Err(error.clone()), "{text}");
        assert_eq!(digest(text.as_bytes()), Err(error));
    }
    assert_eq!(canonical(b"\"\xff\""), Err(ScanError::Utf8 { at: 1 }));
    assert_eq!(
        canonical(b""),
        Err(ScanError::Syntax {
            at: 0,
            expected: "a value"
        })
    );
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(text(&nested(64)), nested(64));
    let deep = "{\"b\":".repeat(1_000_000);
    assert_eq!(
        canonical(deep.as_bytes()),
        Err(ScanError::Depth { at: 320, max: 64 })
    );
}

/// Wide and deep at once, every object in the wrong order.
#[test]
fn large_objects_are_ordered_too() {
    let members = |range: &mut dyn Iterator<Item = usize>| {
        let members: Vec<_> = range.map(|n| format!("\"k{n:05}\":{n}")).collect();
        members.join(",")
    };
    let (up, down) = (members(&mut (0..20_000)), members(&mut (0..20_000).rev()));
    let spelled = (0..60).fold(format!("{{{down}}}"), |inner, _| {
        format!("{{\"z\":0,\"m\":{inner},\"a\":1}}")
    });
    let form = (0..60).fold(format!("{{{up}}}"), |inner, _| {
        format!("{{\"a\":1,\"m\":{inner},\"z\":0}}")
    });
    assert!(text(&spelled) == form);
}

/// Writes values in ways of which `choices` picks one.
struct Speller<C> {
    choices: C,
    out: String,
}

impl<C: Iterator<Item = u8>> Speller<C> {
    fn choose(&mut self, below: usize) -> usize {
        usize::from(self.choices.next().unwrap_or_default()) % below
    }

    fn space(&mut self) {
        let space = ["", "", "", " ", "\t", "\r\n "][self.choose(6)];
        self.out.push_str(space);
    }

    fn value(&mut self, value: &Value) {
        self.space();
        match value {
            Value::String(text) => self.string(text),
            Value::Array(elements) => {
                self.out.push('[');
                for (n, element) in elements.iter().enumerate() {
                    self.out.push_str(if n > 0 { "," } else { "" });
                    self.value(element);
                }
                self.space();
                self.out.push(']');
            }
            Value::Object(members) => self.object(members.iter().collect()),
            scalar => self.out.push_str(&scalar.to_string()),
        }
        self.space();
    }

    fn object(&mut self, mut left: Vec<(&String, &Value)>) {
        self.out.push('{');
        while !left.is_empty() {
            let (key, value) = left.swap_remove(self.choose(left.len()));
            self.space();
            self.string(key);
            self.space();
            self.out.push(':');
            self.value(value);
            self.out.push_str(if left.is_empty() { "" } else { "," });
        }
        self.space();
        self.out.push('}');
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match (c, self.choose(4)) {
                ('"' | '\\' | '/', 0 | 1) => self.out.extend(['\\', c]),
                ('\n', 0 | 1) => self.out.push_str("\\n"),
                ('"' | '\\' | '\0'..='\u{1f}', _) | (_, 0) => {
                    let upper = self.choose(2) == 0;
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        self.out += &if upper {
                            format!("\\u{unit:04X}")
                        } else {
                            format!("\\u{unit:04x}")
                        };
                    }
                }
                _ => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

fn spell(value: &Value, choices: &[u8]) -> String {
    let choices = choices.iter().copied().chain(iter::once(0)).cycle();
    let mut speller = Speller {
        choices,
        out: String::new(),
    };
    speller.value(value);
    speller.out
}

/// Characters that are escaped in some way, and such of which UTF-8 and UTF-16 disagree on the order.
fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c\"/\\\\\n\t\u{0}\u{1f}\u{7f}\u{e9}\u{fffd}\u{1f600}]{0,4}",
        any::<String>()
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        string().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 20, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..20).prop_map(Value::from),
            proptest::collection::hash_map(string(), inner, 0..20)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// So few that two of them are often equal.
fn small() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![
        json!(0),
        json!("0"),
        json!(null),
        json!([]),
        json!({}),
    ]);
    leaf.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..2).prop_map(Value::from),
            proptest::collection::btree_map("[ab]", inner, 0..2)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// `serde_json` orders keys and escapes strings in the same way.
    #[test]
    fn the_value_decides_and_not_its_spelling(value in value(), choices: Vec<u8>) {
        let spelled = spell(&value, &choices);
        let form = text(&spelled);
        prop_assert!(form.len() <= spelled.len());
        prop_assert_eq!(&form, &value.to_string());
        prop_assert_eq!(digest(spelled.as_bytes()), digest(form.as_bytes()));
    }

    #[test]
    fn the_form_is_the_value(value in value(), choices: Vec<u8>) {
        let written: Value = serde_json::from_str(&value.to_string()).expect("JSON");
        let form: Value = serde_json::from_str(&text(&spell(&value, &choices))).expect("JSON");
        prop_assert_eq!(form, written);
    }

    #[test]
    fn values_differ_as_their_forms_do(one in small(), other in small(), choices: Vec<u8>) {
        let (first, second) = (spell(&one, &choices), spell(&other, &[]));
        prop_assert_eq!(one == other, digest(first.as_bytes()) == digest(second.as_bytes()));
    }

    #[test]
    fn any_bytes_are_answered(bytes: Vec<u8>) {
        prop_assert_eq!(canonical(&bytes).is_ok(), crate::mcp::scan::check(&bytes, Rules::Strict).is_ok());
    }
}
