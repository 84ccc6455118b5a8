//! What each dialect means, by cases after the fashion of the JSON Schema Test Suite.

use super::*;

/// The JSON Schema of one property `a` in a dialect, and the values that fit and do not fit it.
type Case<'a> = (&'a str, &'a [&'a str], &'a [&'a str]);

fn hold(dialect: &str, cases: &[Case<'_>]) {
    for (property, fitting, unfit) in cases {
        let schema = format!(
            r#"{{"$schema":"{dialect}","definitions":{{"s":{{"type":"string"}}}},"properties":{{"a":{property}}}}}"#
        );
        for (values, expected) in [(fitting, true), (unfit, false)] {
            for value in *values {
                let arguments = format!(r#"{{"a":{value}}}"#);
                assert_eq!(
                    fits(&schema, &arguments),
                    expected,
                    "{dialect}: {property} {value}"
                );
            }
        }
    }
}

/// What all of them have in common.
const COMMON: &[Case<'_>] = &[
    (
        r#"{"type":"string","minLength":2}"#,
        &[r#""ab""#, r#""日本""#],
        &[r#""a""#, r#""😀""#, "1", "null"],
    ),
    (
        r#"{"type":["integer","null"]}"#,
        &["1", "null", "-1"],
        &["1.5", "true", r#""1""#],
    ),
    (
        r#"{"enum":[1,"a",{"b":[null]}]}"#,
        &["1", "1.0", r#""a""#, r#"{"b":[null]}"#],
        &["2", r#"{"b":[]}"#],
    ),
    (
        r#"{"type":"array","items":{"type":"integer"},"uniqueItems":true}"#,
        &["[]", "[1,2]"],
        &["[1,1]", r#"["a"]"#],
    ),
    (
        r#"{"type":"object","properties":{"b":{"type":"string"}},"required":["b"],"additionalProperties":false}"#,
        &[r#"{"b":"x"}"#],
        &["{}", r#"{"b":1}"#, r#"{"b":"x","c":1}"#],
    ),
    (
        r#"{"patternProperties":{"^x-":{"type":"integer"}}}"#,
        &[r#"{"x-a":1,"y":""}"#],
        &[r#"{"x-a":""}"#],
    ),
    (
        r#"{"oneOf":[{"type":"integer"},{"minimum":2}]}"#,
        &["1", "2.5"],
        &["3", "1.5"],
    ),
    (r#"{"not":{"type":"null"}}"#, &["1"], &["null"]),
    (r##"{"$ref":"#/definitions/s"}"##, &[r#""x""#], &["1"]),
    // Formats are annotations.
    (
        r#"{"type":"string","format":"email"}"#,
        &[r#""no address""#],
        &["1"],
    ),
    (r#"{"format":"ipv4"}"#, &[r#""x""#], &[]),
    (
        r#"{"contentEncoding":"base64","contentMediaType":"application/json"}"#,
        &[r#""{""#],
        &[],
    ),
    (
        r#"{"x-unknown":{"type":"null"},"type":"string"}"#,
        &[r#""x""#],
        &["null"],
    ),
];

#[test]
fn draft_2020_12() {
    for dialect in [
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft/2020-12/schema#",
    ] {
        hold(dialect, COMMON);
        hold(
            dialect,
            &[
                (
                    r#"{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}"#,
                    &[r#"["a",1]"#],
                    &[r#"["a","b"]"#, "[1]"],
                ),
                (
                    r#"{"contains":{"const":1},"minContains":2,"maxContains":3}"#,
                    &["[1,1]", "[1,1,1,0]"],
                    &["[1]", "[1,1,1,1]"],
                ),
                (
                    r#"{"dependentRequired":{"b":["c"]}}"#,
                    &["{}", r#"{"b":1,"c":1}"#],
                    &[r#"{"b":1}"#],
                ),
                (
                    r#"{"dependentSchemas":{"b":{"minProperties":2}}}"#,
                    &["{}", r#"{"b":1,"c":1}"#],
                    &[r#"{"b":1}"#],
                ),
                (
                    r#"{"allOf":[{"properties":{"b":{}}}],"properties":{"c":{}},"unevaluatedProperties":false}"#,
                    &[r#"{"b":1,"c":1}"#],
                    &[r#"{"d":1}"#],
                ),
                (
                    r#"{"if":{"type":"integer"},"then":{"minimum":0},"else":{"type":"string"}}"#,
                    &["1", r#""x""#],
                    &["-1", "null"],
                ),
                (
                    r##"{"$ref":"#/definitions/s","maxLength":1}"##,
                    &[r#""x""#],
                    &[r#""xy""#],
                ),
                (r#"{"exclusiveMinimum":1}"#, &["1.1"], &["1"]),
                (
                    r#"{"propertyNames":{"pattern":"^[a-z]+$"}}"#,
                    &[r#"{"b":1}"#],
                    &[r#"{"B":1}"#],
                ),
            ],
        );
    }
}

#[test]
fn draft_2020_12_is_meant_where_no_dialect_is_named() {
    assert!(!fits(
        r#"{"properties":{"a":{"prefixItems":[{"type":"string"}]}}}"#,
        r#"{"a":[1]}"#
    ));
    assert!(!fits(
        r##"{"properties":{"a":{"$ref":"#/$defs/s","maxLength":1}},"$defs":{"s":{}}}"##,
        r#"{"a":"xy"}"#
    ));
}

#[test]
fn draft_2019_09() {
    let dialect = "https://json-schema.org/draft/2019-09/schema";
    hold(dialect, COMMON);
    hold(
        dialect,
        &[
            (
                r#"{"items":[{"type":"string"}],"additionalItems":false}"#,
                &[r#"["a"]"#],
                &[r#"["a",1]"#, "[1]"],
            ),
            (r#"{"prefixItems":[{"type":"string"}]}"#, &["[1]"], &[]),
            (
                r#"{"dependentRequired":{"b":["c"]}}"#,
                &["{}"],
                &[r#"{"b":1}"#],
            ),
            (
                r#"{"properties":{"b":{}},"unevaluatedProperties":false}"#,
                &[r#"{"b":1}"#],
                &[r#"{"c":1}"#],
            ),
            (
                r##"{"$ref":"#/definitions/s","maxLength":1}"##,
                &[r#""x""#],
                &[r#""xy""#],
            ),
            (
                r#"{"$recursiveAnchor":true,"properties":{"n":{"type":"integer"}}}"#,
                &[r#"{"n":1}"#],
                &[r#"{"n":""}"#],
            ),
        ],
    );
}

#[test]
fn draft_07() {
    for dialect in [
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft-07/schema",
    ] {
        hold(dialect, COMMON);
        hold(
            dialect,
            &[
                (
                    r#"{"items":[{"type":"string"}],"additionalItems":{"type":"null"}}"#,
                    &[r#"["a",null]"#],
                    &[r#"["a",1]"#],
                ),
                (
                    r#"{"if":{"type":"integer"},"then":{"minimum":0}}"#,
                    &["1", r#""x""#],
                    &["-1"],
                ),
                (
                    r#"{"dependencies":{"b":["c"],"d":{"minProperties":2}}}"#,
                    &["{}", r#"{"b":1,"c":1}"#],
                    &[r#"{"b":1}"#, r#"{"d":1}"#],
                ),
                (r#"{"const":null}"#, &["null"], &["0"]),
                // What stands beside a reference is not looked at.
                (
                    r##"{"$ref":"#/definitions/s","maxLength":1}"##,
                    &[r#""xy""#],
                    &["1"],
                ),
                (
                    r#"{"unevaluatedProperties":false,"prefixItems":[false]}"#,
                    &[r#"{"b":1}"#, "[1]"],
                    &[],
                ),
            ],
        );
    }
}

#[test]
fn draft_06() {
    let dialect = "http://json-schema.org/draft-06/schema#";
    hold(dialect, COMMON);
    hold(
        dialect,
        &[
            (r#"{"exclusiveMaximum":3}"#, &["2"], &["3"]),
            (r#"{"contains":{"const":1}}"#, &["[0,1]"], &["[0]"]),
            (
                r#"{"propertyNames":{"maxLength":1}}"#,
                &[r#"{"b":1}"#],
                &[r#"{"bc":1}"#],
            ),
            (r#"{"type":"integer"}"#, &["1.0"], &["1.5"]),
            (r#"{"if":true,"then":false}"#, &["1"], &[]),
        ],
    );
}

#[test]
fn draft_04() {
    let dialect = "http://json-schema.org/draft-04/schema#";
    hold(dialect, COMMON);
    hold(
        dialect,
        &[
            (r#"{"minimum":1,"exclusiveMinimum":true}"#, &["1.1"], &["1"]),
            (r#"{"maximum":3,"exclusiveMaximum":false}"#, &["3"], &["4"]),
            (
                r#"{"id":"http://example.com/a","type":"string"}"#,
                &[r#""x""#],
                &["1"],
            ),
            (r#"{"const":1,"contains":false}"#, &["2", "[]"], &[]),
            // Draft 4 goes by the spelling.
            (r#"{"type":"integer"}"#, &["1"], &["1.0"]),
        ],
    );
}

#[test]
fn a_dialect_that_is_not_known_is_named() {
    for (schema, named) in [
        (
            "\"https://example.com/dialect\"",
            "\"https://example.com/dialect\"",
        ),
        (
            "\"http://json-schema.org/draft-03/schema#\"",
            "\"http://json-schema.org/draft-03/schema#\"",
        ),
        (
            "\"http://json-schema.org/schema#\"",
            "\"http://json-schema.org/schema#\"",
        ),
        ("7", "7"),
    ] {
        assert_eq!(
            unusable(&format!(r#"{{"$schema":{schema}}}"#)),
            format!("its `$schema` {named} names no dialect that is known")
        );
    }
}
