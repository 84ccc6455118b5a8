use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::refusal::Code;

fn strict(text: &str) -> Result<(), ScanError> {
    check(text.as_bytes(), Rules::Strict)
}

fn loose(text: &str) -> Result<(), ScanError> {
    check(text.as_bytes(), Rules::Loose)
}

#[test]
fn what_parsers_disagree_about_is_refused_only_where_it_is_judged() {
    for (text, error) in [
        (r#"{"a":1,"a":2}"#, ScanError::DuplicateKey { at: 10 }),
        (r#"{"a":1,"\u0061":2}"#, ScanError::DuplicateKey { at: 15 }),
        (
            r#"[{"x":{"a":1,"b":2,"a":3}}]"#,
            ScanError::DuplicateKey { at: 22 },
        ),
        (r#""\ud800""#, ScanError::LoneSurrogate { at: 8 }),
        (r#""\udc00\ud800""#, ScanError::LoneSurrogate { at: 14 }),
        (r#""\ud800x\udc00""#, ScanError::LoneSurrogate { at: 15 }),
        (
            r#""\ud800\ud800\udc00""#,
            ScanError::LoneSurrogate { at: 20 },
        ),
        (r#""\ud83d\n""#, ScanError::LoneSurrogate { at: 10 }),
        (r#"{"\ud800":1}"#, ScanError::LoneSurrogate { at: 9 }),
        ("1e400", ScanError::NumberRange { at: 0 }),
        ("[-1e309]", ScanError::NumberRange { at: 1 }),
        ("18446744073709551616", ScanError::NumberRange { at: 0 }),
        ("-9223372036854775809", ScanError::NumberRange { at: 0 }),
    ] {
        assert_eq!(strict(text), Err(error.clone()), "{text}");
        assert_eq!(error.code(), Code::Ambiguous);
        assert_eq!(loose(text), Ok(()), "{text}");
    }
}

#[test]
fn what_every_parser_reads_alike_passes() {
    for text in [
        r#"{"a":1,"A":2,"b":{"a":1}}"#,
        r#""\ud83d\ude00 \\\" \/ \u0000""#,
        "18446744073709551615",
        "-9223372036854775808",
        "[1.7976931348623157e308, 1e-400, -0, 0.0, 1E+2]",
        " \t\r\n[ ] ",
        "{}",
        "\"caf\u{e9} \u{1F600} 12345678\"",
    ] {
        assert_eq!(strict(text), Ok(()), "{text}");
    }
}

#[test]
fn what_is_not_json_is_refused_under_both_rules() {
    for text in [
        "",
        " ",
        "{",
        "[",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\"}",
        "{a:1}",
        "[1 2]",
        "1 2",
        "{} x",
        "01",
        "-",
        "1.",
        "1e",
        ".5",
        "+1",
        "tru",
        "nul",
        "'a'",
        "\"a",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "\"12345678\u{1}\"",
        "{1:2}",
        "[}",
        "{]",
        "\u{feff}{}",
        "NaN",
        "{\"a\":}",
        "[,1]",
        ",",
        "]",
        "{,}",
        "\"\\ud83d\\u\"",
    ] {
        assert_eq!(
            strict(text).map_err(|error| error.code()),
            Err(Code::ParseError),
            "{text:?}"
        );
        assert_eq!(
            loose(text).map_err(|error| error.code()),
            Err(Code::ParseError),
            "{text:?}"
        );
    }
    assert_eq!(
        check(b"\"\xff\"", Rules::Loose),
        Err(ScanError::Utf8 { at: 1 })
    );
    assert_eq!(
        check(b"\"\xed\xa0\x80\"", Rules::Strict),
        Err(ScanError::Utf8 { at: 1 })
    );
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(strict(&nested(64)), Ok(()));
    assert_eq!(
        strict(&nested(65)),
        Err(ScanError::Depth { at: 64, max: 64 })
    );
    assert_eq!(loose(&nested(128)), Ok(()));
    assert_eq!(
        loose(&nested(129)),
        Err(ScanError::Depth { at: 128, max: 128 })
    );
    let objects = format!("{}1{}", "{\"a\":".repeat(65), "}".repeat(65));
    assert_eq!(strict(&objects), Err(ScanError::Depth { at: 320, max: 64 }));
    assert!(strict(&"[".repeat(1_000_000)).is_err());
}

#[test]
fn wide_objects_are_searched_too() {
    let object = |count: usize, last: &str| {
        let keys: String = (0..count)
            .map(|n| format!("\"k{n}\":{{\"k0\":0}},"))
            .collect();
        format!("{{{keys}\"{last}\":0}}")
    };
    for count in [15, 16, 17, 5000] {
        assert_eq!(strict(&object(count, "last")), Ok(()), "{count}");
        for twin in ["k0", "\\u006b0", &format!("k{}", count - 1)] {
            assert!(
                matches!(
                    strict(&object(count, twin)),
                    Err(ScanError::DuplicateKey { .. })
                ),
                "{count} {twin}"
            );
        }
    }
}

#[test]
fn unescape_decodes_pairs_and_replaces_halves() {
    assert_eq!(unescape("plain"), "plain");
    assert_eq!(unescape(r"\ud83d\ude00-\ud800x"), "\u{1F600}-\u{FFFD}x");
    assert_eq!(
        unescape(r#"a\"\\\/\b\f\n\r\t\u00e9z"#),
        "a\"\\/\u{8}\u{c}\n\r\t\u{e9}z"
    );
}

#[test]
fn long_strings_end_where_they_end() {
    for length in 0..200 {
        let plain = "x\u{e9}".repeat(length);
        assert_eq!(strict(&format!("\"{plain}\"")), Ok(()), "{length}");
        assert_eq!(
            strict(&format!("[\"{plain}\\\"{plain}\",1]")),
            Ok(()),
            "{length}"
        );
        for broken in ["\u{1f}", "\n", "\\x", "\"x"] {
            let text = format!("\"{plain}{broken}{plain}\"");
            assert!(strict(&text).is_err(), "{length} {broken:?}");
        }
        assert!(strict(&format!("\"{plain}")).is_err(), "{length}");
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 20, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..20).prop_map(Value::from),
            proptest::collection::hash_map(any::<String>(), inner, 0..20)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Text that is often JSON and otherwise close to it.
fn near_json() -> impl Strategy<Value = String> {
    let pieces = vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "{\"a\":",
        "\"b\":",
        "\"\\u0061\"",
        "\"\\ud800\"",
        "1",
        "-0",
        ".5",
        "e9",
        "99999999999999999999",
        "1e999",
        "true",
        "null",
        " ",
        "\"",
        "\\",
    ];
    proptest::collection::vec(prop::sample::select(pieces), 0..12)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn accepts_every_document_that_serde_json_writes(value in json_value(), pretty: bool) {
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        prop_assert_eq!(strict(&text), Ok(()));
        prop_assert_eq!(loose(&text), Ok(()));
    }

    #[test]
    fn agrees_with_serde_json_on_what_is_json(text in near_json()) {
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
        prop_assert_eq!(loose(&text).is_ok(), theirs, "{}", text);
    }

    #[test]
    fn a_strict_accept_is_read_alike(text in near_json()) {
        if strict(&text).is_ok() {
            let value: Value = serde_json::from_str(&text).expect("strict is within JSON");
            let again: Value = serde_json::from_str(&value.to_string()).expect("written by serde_json");
            prop_assert_eq!(value, again);
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let theirs = serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok();
        if check(&bytes, Rules::Strict).is_ok() {
            prop_assert!(theirs);
        }
    }

    #[test]
    fn strings_decode_as_serde_json_decodes_them(text: String) {
        let json = Value::from(text.clone()).to_string();
        let part = Scanner::new(json.as_bytes(), Rules::Strict).expect("text").value().expect("a string");
        prop_assert_eq!(part.string().expect("a string"), text);
    }
}
