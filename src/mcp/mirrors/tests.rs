use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::{check::integer, *};
use crate::{
    mcp::{Envelope, headers},
    refusal::Code,
};

/// What is mirrored by the `inputSchema` that a tool of a list has.
fn read(schema: &str) -> Result<Mirrors, Invalid> {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{{"name":"t","inputSchema":{schema}}}]}}}}"#
    );
    let envelope = Envelope::upstream(text.as_bytes()).expect("a response");
    let result = envelope.result.expect("a result").whole;
    let page = crate::mcp::tools::Page::read(result, 1).expect("a page");
    page.tools[0].mirrors.clone()
}

/// Headers and the paths that they mirror, in the order of the paths.
fn found(schema: &str) -> Vec<String> {
    let mirrors = read(schema).expect("valid annotations");
    let line = |mirror: &Mirror| format!("{}={}", mirror.header, mirror.path.join("/"));
    mirrors.0.iter().map(line).collect()
}

#[test]
fn annotated_properties_are_found() {
    assert_eq!(found(r#"{"type":"object"}"#), [""; 0]);
    assert_eq!(
        found(
            r#"{"type":"object","properties":{
                "region":{"type":"string","x-mcp-header":"Region"},
                "query":{"type":"string","default":{"x-mcp-header":7}},
                "x-mcp-header":{"x-mcp-header":"X!#$%&'*+-.^_`|~09","type":"integer"},
                "deep":{"type":"object","properties":{"properties":{"properties":{
                    "dry":{"type":"boolean","x-mcp-header":"Dry"}}}}}},
                "const":{"x-mcp-header":"no annotation"}}"#
        ),
        [
            "mcp-param-dry=deep/properties/dry",
            "mcp-param-region=region",
            "mcp-param-x!#$%&'*+-.^_`|~09=x-mcp-header",
        ]
    );
    let escaped = r#"{"p\u0072operties":{"\u0061":{"t\u0079pe":"str\u0069ng","x-mcp-h\u0065ader":"\u0041"}}}"#;
    assert_eq!(found(escaped), ["mcp-param-a=a"]);
}

#[test]
fn annotations_that_cannot_be_followed_are_refused() {
    let of = |property: &str| read(&format!(r#"{{"properties":{{"a":{property}}}}}"#));
    for name in [
        r#""""#,
        r#""X\r\nEvil: 1""#,
        r#""a\u000ab""#,
        r#""a b""#,
        r#""a:b""#,
        r#""é""#,
        "7",
        "null",
        r#"["A"]"#,
    ] {
        let found = of(&format!(r#"{{"type":"string","x-mcp-header":{name}}}"#));
        assert_eq!(found, Err(Invalid::Name("a".to_owned())), "{name}");
    }
    for kind in [
        r#""type":"number","#,
        r#""type":"object","#,
        r#""type":"array","#,
        r#""type":"null","#,
        r#""type":["string","null"],"#,
        r#""type":["string"],"#,
        "",
    ] {
        let found = of(&format!(r#"{{{kind}"x-mcp-header":"A"}}"#));
        assert_eq!(found, Err(Invalid::Type("a".to_owned())), "{kind}");
    }
    const GOOD: &str = r#"{"type":"string","x-mcp-header":"A"}"#;
    for (schema, place) in [
        (GOOD.to_owned(), ""),
        (format!(r#"{{"properties":{GOOD}}}"#), "type"),
        (
            format!(r#"{{"properties":{{"a":{{"items":{GOOD}}}}}}}"#),
            "a",
        ),
        (
            format!(r#"{{"properties":{{"a":{{"items":[{GOOD}]}}}}}}"#),
            "a",
        ),
        (
            format!(r#"{{"items":{{"properties":{{"b":{GOOD}}}}}}}"#),
            "b",
        ),
        (
            format!(r#"{{"oneOf":[{{"properties":{{"b":{GOOD}}}}}]}}"#),
            "b",
        ),
        (
            format!(r#"{{"properties":{{"a":{{"anyOf":[{{}},{GOOD}]}}}}}}"#),
            "a",
        ),
        (format!(r#"{{"allOf":[{GOOD}]}}"#), ""),
        (format!(r#"{{"not":{GOOD}}}"#), ""),
        (format!(r#"{{"if":{GOOD}}}"#), ""),
        (format!(r#"{{"then":{GOOD}}}"#), ""),
        (format!(r#"{{"else":{GOOD}}}"#), ""),
        (format!(r#"{{"additionalProperties":{GOOD}}}"#), ""),
        (format!(r#"{{"patternProperties":{{"^p":{GOOD}}}}}"#), "^p"),
        (
            format!(r##"{{"$ref":"#/$defs/d","$defs":{{"d":{GOOD}}}}}"##),
            "d",
        ),
        (format!(r#"{{"definitions":{{"d":{GOOD}}}}}"#), "d"),
    ] {
        let expected = match place {
            // The annotation is itself a property here, and no schema.
            "type" => Ok(Mirrors::default()),
            place => Err(Invalid::Place(place.to_owned())),
        };
        assert_eq!(read(&schema), expected, "{schema}");
    }
}

#[test]
fn headers_and_deciding_members_stand_once() {
    let two = |names: [&str; 2], headers: [&str; 2]| {
        read(&format!(
            r#"{{"properties":{{"{}":{{"type":"string","x-mcp-header":"{}"}},"{}":{{"type":"string","x-mcp-header":"{}"}}}}}}"#,
            names[0], headers[0], names[1], headers[1]
        ))
    };
    assert_eq!(
        two(["a", "b"], ["A", "B"]).map(|found| found.0.len()),
        Ok(2)
    );
    let same = HeaderName::from_static("mcp-param-myfield");
    assert_eq!(
        two(["a", "b"], ["MyField", "myfield"]),
        Err(Invalid::SameHeader(same))
    );
    let twice = |key: &str| Err(Invalid::Ambiguous(key.to_owned()));
    assert_eq!(two(["a", r"\u0061"], ["A", "B"]), twice("a"));
    const GOOD: &str = r#"{"type":"string","x-mcp-header":"A"}"#;
    for (schema, key) in [
        (
            format!(r#"{{"properties":{{"a":{GOOD}}},"properties":{{}}}}"#),
            "properties",
        ),
        (
            format!(r#"{{"properties":{{"a":{GOOD},"b":{{"type":1,"type":2}}}}}}"#),
            "type",
        ),
        (
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A","x-mcp-header":"B"}}}"#
                .to_owned(),
            "x-mcp-header",
        ),
    ] {
        assert_eq!(read(&schema), twice(key), "{schema}");
    }
    // Nothing is mirrored, so nobody disagrees about it.
    let plain = r#"{"type":"object","type":"object","description":"x-mcp-header"}"#;
    assert_eq!(read(plain), Ok(Mirrors::default()));
}

#[test]
fn what_is_kept_is_bounded() {
    let properties = |count: usize, long: usize| {
        let name = "n".repeat(long);
        let property = |n| format!(r#""{n}{name}":{{"type":"string","x-mcp-header":"A{n}"}}"#);
        let all: Vec<_> = (0..count).map(property).collect();
        read(&format!(r#"{{"properties":{{{}}}}}"#, all.join(",")))
    };
    assert_eq!(properties(32, 0).map(|found| found.0.len()), Ok(32));
    assert_eq!(properties(33, 0), Err(Invalid::TooMuch));
    assert_eq!(properties(1, 4000).map(|found| found.0.len()), Ok(1));
    assert_eq!(properties(1, 4096), Err(Invalid::TooMuch));
    let deep = |levels: usize| {
        let (open, close) = (r#"{"properties":{"a":"#.repeat(levels), "}}".repeat(levels));
        read(&format!(
            r#"{open}{{"type":"string","x-mcp-header":"A"}}{close}"#
        ))
    };
    assert_eq!(deep(16).map(|found| found.0.len()), Ok(1));
    assert_eq!(deep(17), Err(Invalid::TooMuch));
    assert_eq!(deep(56), Err(Invalid::TooMuch));
}

/// One call of a tool that mirrors `a`, `b/c` and `b/d`.
fn check(arguments: &str, sent: &[(&'static str, &str)]) -> Result<(), String> {
    let mirrors = read(
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":{
            "d":{"type":"integer","x-mcp-header":"D"},"c":{"type":"boolean","x-mcp-header":"C"}}}}}"#,
    );
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

    #[test]
    fn no_schema_is_too_odd(text in r#"([\[\]{}:,]|"(x-mcp-header|properties|items|a)"){0,24}"#) {
        if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
            drop(read(&text));
        }
    }
}
