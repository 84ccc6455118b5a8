use proptest::prelude::*;

use super::*;
use crate::mcp::Envelope;

/// One call of a tool that mirrors `a`, `b/c` and `b/d`.
fn check(arguments: &str, sent: &[(&'static str, &str)]) -> Result<(), String> {
    let schema = r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":{
            "d":{"type":"integer","x-mcp-header":"D"},"c":{"type":"boolean","x-mcp-header":"C"}}}}}"#;
    let mut schema = Scanner::new(schema.as_bytes(), Rules::Loose).expect("UTF-8");
    let mirrors = Mirrors::read(schema.value().expect("JSON"));
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t"{arguments}}}}}"#
    );
    let message = Envelope::inbound(text.as_bytes()).expect("a request");
    let mut headers = HeaderMap::new();
    for (name, value) in sent {
        headers.insert(*name, HeaderValue::from_str(value).expect("a header value"));
    }
    let arguments = message.params.as_ref().and_then(|params| params.arguments);
    let checked = mirrors
        .expect("valid annotations")
        .check(arguments, &headers);
    checked.map_err(|refusal| {
        assert_eq!(refusal.code, Code::HeaderMismatch);
        refusal.public
    })
}

/// One call whose `a` is this JSON text, and mirrored so.
fn mirrored(value: &str, header: &str) -> bool {
    let arguments = format!(r#","arguments":{{"a":{value}}}"#);
    check(&arguments, &[("mcp-param-a", header)]).is_ok()
}

#[test]
fn headers_stand_exactly_where_arguments_do() {
    let all = [
        ("mcp-param-a", "x"),
        ("mcp-param-c", "true"),
        ("mcp-param-d", "-7"),
    ];
    assert_eq!(
        check(
            r#","arguments":{"a":"x","b":{"c":true,"e":1,"d":-7}}"#,
            &all
        ),
        Ok(())
    );
    for arguments in [
        "",
        r#","arguments":{}"#,
        r#","arguments":{"a":null,"b":{"c":null}}"#,
        r#","arguments":{"b":7,"c":"x","mcp-param-a":"x"}"#,
        r#","arguments":{"b":{"a":"x","b":{"c":true}}}"#,
        r#","arguments":{"b":[{"c":true}]}"#,
    ] {
        assert_eq!(
            check(arguments, &[("mcp-param-other", "x")]),
            Ok(()),
            "{arguments}"
        );
        assert_eq!(
            check(arguments, &[("mcp-param-c", "")]),
            Err("header `mcp-param-c` has a value, and the arguments have none for it".to_owned()),
            "{arguments}"
        );
    }
    assert_eq!(
        check(r#","arguments":{"b":{"d":0}}"#, &[]),
        Err("header `mcp-param-d` is missing, and the arguments have its value".to_owned())
    );
    assert_eq!(
        check(r#","arguments":{"a":"eu"}"#, &[("mcp-param-a", "us")]),
        Err("header `mcp-param-a` does not say what the arguments say".to_owned())
    );
    assert_eq!(
        check(
            r#","arguments":{"a":"eu"}"#,
            &[("mcp-param-a", "=?base64?ZXU?=")]
        ),
        Err("header `mcp-param-a` is not visible ASCII, or not valid base64 of UTF-8".to_owned())
    );
}

#[test]
fn strings_are_compared_decoded() {
    for (value, header) in [
        (r#""us-west1""#, "us-west1"),
        (r#""us-w\u0065st1""#, "us-west1"),
        (r#""a\tb c""#, "a\tb c"),
        (r#""Hello, 世界""#, "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (r#"" padded ""#, "=?base64?IHBhZGRlZCA=?="),
        (r#""line1\nline2""#, "=?base64?bGluZTEKbGluZTI=?="),
        (
            r#""=?base64?literal?=""#,
            "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
        ),
        (r#""=?BASE64?eA==?=""#, "=?BASE64?eA==?="),
        (r#""=?base64?eA==""#, "=?base64?eA=="),
        (r#""""#, ""),
        (r#""""#, "=?base64??="),
        (r#""eu""#, "=?base64?ZXU=?="),
        (r#""eu""#, " eu "),
        (r#""42""#, "42"),
    ] {
        assert!(mirrored(value, header), "{value} {header}");
    }
    for (value, header) in [
        (r#""eu""#, "EU"),
        (r#""eu""#, ""),
        (r#"" padded ""#, " padded "),
        (r#""=?base64?literal?=""#, "=?base64?literal?="),
        (r#""=?base64?eA==?=""#, "=?base64?eA==?="),
        (r#""x""#, "=?BASE64?eA==?="),
        (r#""eu""#, "=?base64?ZXV=?="),
        (r#""eu""#, "=?base64?ZX U=?="),
        ("\"\u{fffd}\"", "=?base64?/w==?="),
        (r#""42""#, "42.0"),
        (r#""true""#, "TRUE"),
    ] {
        assert!(!mirrored(value, header), "{value} {header}");
    }
}

#[test]
fn integers_are_compared_by_value_and_booleans_by_name() {
    for (value, header) in [
        ("42", "42"),
        ("42", "42.0"),
        ("42.0", "42"),
        ("42", "4.2e1"),
        ("4200e-2", "42"),
        ("42.000000000000000000000000", "42"),
        ("-7", "-7"),
        ("0", "-0"),
        ("0.0e5", "0"),
        ("9007199254740991", "9007199254740991"),
        ("-9007199254740991", "-9007199254740991.0"),
        ("42", "=?base64?NDI=?="),
        ("true", "true"),
        ("false", "false"),
    ] {
        assert!(mirrored(value, header), "{value} {header}");
    }
    for (value, header) in [
        ("42", "43"),
        ("42", "+42"),
        ("42", "042"),
        ("42", "0x2a"),
        ("42", "42."),
        ("42", ".42e2"),
        ("42", "42e"),
        ("42", "4 2"),
        ("42", "42,42"),
        ("42", "=?base64?IDQy?="),
        ("42", "٤٢"),
        ("42", ""),
        ("42", "-"),
        ("7", "-7"),
        ("1", "1.00000000000000000001"),
        ("1.5", "1.5"),
        ("9007199254740992", "9007199254740992"),
        ("-9007199254740992", "-9007199254740992"),
        ("1e300", "1e300"),
        ("true", "True"),
        ("true", "1"),
        ("false", ""),
        ("[]", "[]"),
        ("{}", "{}"),
        (r#"["eu"]"#, "eu"),
    ] {
        assert!(!mirrored(value, header), "{value} {header}");
    }
}

proptest! {
    /// What the encoder makes of a string is always taken for it, and never for another.
    #[test]
    fn encoded_strings_are_their_own(one: String, other: String) {
        let encoded = headers::encode(&one);
        let header = encoded.to_str().expect("visible ASCII");
        let json = |text: &String| serde_json::to_string(text).expect("a string");
        prop_assert!(mirrored(&json(&one), header));
        prop_assert_eq!(mirrored(&json(&other), header), one == other);
    }

    #[test]
    fn integers_have_many_forms(number in -9_007_199_254_740_991_i64..=9_007_199_254_740_991, zeros in 0_usize..4) {
        let pad = "0".repeat(zeros);
        for form in [
            format!("{number}"),
            format!("{number}.{pad}0"),
            format!("{number}e{pad}0"),
            format!("{number}{pad}E-{zeros}"),
            format!("{number}.0{pad}e+0"),
        ] {
            prop_assert_eq!(integer(&form), Some(number), "{}", form);
        }
        prop_assert_eq!(integer(&format!("{number}.5")), None);
    }

    /// Any text is judged, and a number that is one stands for what it says.
    #[test]
    fn no_text_is_too_odd(text in "[-+0-9.eE]{0,24}", any: String) {
        integer(&any);
        if let Some(number) = integer(&text) {
            prop_assert_eq!(text.parse::<f64>().expect("a number"), number as f64);
        }
    }
}
