use serde_json::Value;

use super::super::compiled::{Compiled, Effort, Verdict};

/// What is said of `arguments`; nothing where they fit.
fn said(schema: &str, arguments: &str) -> String {
    let compiled = Compiled::of(schema).expect("a schema");
    match compiled.check(arguments, Effort::Little) {
        Verdict::Fits => String::new(),
        Verdict::Unfit(why) => why,
        Verdict::Stopped(stopped) => stopped.to_string(),
    }
}

/// The same for a schema of one property `a`.
fn said_of(property: &str, value: &str) -> String {
    let schema = format!(r#"{{"type":"object","properties":{{"a":{property}}}}}"#);
    said(&schema, &format!(r#"{{"a":{value}}}"#))
}

fn all(cases: &[(&str, &str, &str)]) {
    for (property, value, expected) in cases {
        assert_eq!(said_of(property, value), *expected, "{property} {value}");
    }
}

#[test]
fn each_keyword_says_what_was_found_and_what_is_expected() {
    all(&[
        (
            r#"{"type":"integer"}"#,
            "1.5",
            "`/a`: found the number 1.5, expected an integer",
        ),
        (
            r#"{"type":"integer"}"#,
            "true",
            "`/a`: found the boolean true, expected an integer",
        ),
        (
            r#"{"type":["string","null"]}"#,
            "[1,2]",
            "`/a`: found an array of 2 items, expected null or a string",
        ),
        (
            r#"{"type":"string"}"#,
            r#"{"b":1}"#,
            "`/a`: found an object of 1 member, expected a string",
        ),
        (
            r#"{"type":"string"}"#,
            "null",
            "`/a`: found null, expected a string",
        ),
        (
            r#"{"enum":["red","green",3,null]}"#,
            r#""blue""#,
            r#"`/a`: found the string "blue", expected one of "red", "green", 3, null"#,
        ),
        (
            r#"{"enum":[1,2,3,4,5,6,7,8,9,10,11,12]}"#,
            "0",
            "`/a`: found the number 0, expected one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 2 more",
        ),
        (
            r#"{"const":"x"}"#,
            r#""y""#,
            r#"`/a`: found the string "y", expected "x""#,
        ),
        (
            r#"{"minimum":3}"#,
            "2",
            "`/a`: found the number 2, expected at least 3",
        ),
        (
            r#"{"maximum":3.5}"#,
            "4",
            "`/a`: found the number 4, expected at most 3.5",
        ),
        (
            r#"{"exclusiveMinimum":3}"#,
            "3",
            "`/a`: found the number 3, expected more than 3",
        ),
        (
            r#"{"exclusiveMaximum":3}"#,
            "3",
            "`/a`: found the number 3, expected less than 3",
        ),
        (
            r#"{"multipleOf":5}"#,
            "7",
            "`/a`: found the number 7, expected a multiple of 5",
        ),
        (
            r#"{"minLength":3}"#,
            r#""ab""#,
            r#"`/a`: found the string "ab", expected at least 3 characters"#,
        ),
        (
            r#"{"maxLength":1}"#,
            r#""ab""#,
            r#"`/a`: found the string "ab", expected at most 1 characters"#,
        ),
        (
            r#"{"pattern":"^[a-z]+[0-9]$"}"#,
            r#""AB""#,
            r#"`/a`: found the string "AB", expected a string that matches `^[a-z]+[0-9]$`"#,
        ),
        (
            r#"{"minItems":2}"#,
            "[1]",
            "`/a`: found an array of 1 item, expected at least 2 items",
        ),
        (
            r#"{"maxItems":0}"#,
            "[1]",
            "`/a`: found an array of 1 item, expected at most 0 items",
        ),
        (
            r#"{"uniqueItems":true}"#,
            "[1,1.0]",
            "`/a`: found an array of 2 items, expected items that all differ",
        ),
        (
            r#"{"contains":{"const":1}}"#,
            "[2]",
            "`/a`: found an array of 1 item, expected an item of the kind that must be in it",
        ),
        (
            r#"{"minProperties":1}"#,
            "{}",
            "`/a`: found an object of 0 members, expected at least 1 members",
        ),
        (
            "false",
            "1",
            "`/a`: found the number 1, expected nothing here",
        ),
        (
            r#"{"not":{"type":"string"}}"#,
            r#""x""#,
            r#"`/a`: found the string "x", expected something that its schema does not exclude"#,
        ),
        (
            r#"{"propertyNames":{"maxLength":2}}"#,
            r#"{"long":1}"#,
            "`/a`: found the name `long` of a member, expected at most 2 characters",
        ),
        (
            r#"{"items":{"type":"string"}}"#,
            r#"["x",1]"#,
            "`/a/1`: found the number 1, expected a string",
        ),
        (
            r#"{"prefixItems":[{}],"items":false}"#,
            "[1,2]",
            "`/a/1`: found the number 2, expected nothing here",
        ),
        (
            r#"{"prefixItems":[{}],"unevaluatedItems":false}"#,
            "[1,2]",
            "`/a`: found an array of 2 items, expected no further items",
        ),
    ]);
}

#[test]
fn a_string_where_something_else_is_due_is_explained_and_not_guessed() {
    all(&[
        (
            r#"{"type":"object"}"#,
            r#""{\"b\": 1}""#,
            r#"`/a`: found the string "{\"b\": 1}", expected an object; this is a string of JSON: pass the object itself"#,
        ),
        (
            r#"{"type":"array"}"#,
            r#""[1]""#,
            r#"`/a`: found the string "[1]", expected an array; this is a string of JSON: pass the array itself"#,
        ),
        (
            r#"{"type":"object"}"#,
            r#""{b}""#,
            r#"`/a`: found the string "{b}", expected an object"#,
        ),
        (
            r#"{"type":"integer"}"#,
            r#""42""#,
            r#"`/a`: found the string "42", expected an integer; this is a number in a string: pass the number itself"#,
        ),
        (
            r#"{"type":"number"}"#,
            r#"" -1.5e3 ""#,
            r#"`/a`: found the string " -1.5e3 ", expected a number; this is a number in a string: pass the number itself"#,
        ),
        (
            r#"{"type":"number"}"#,
            r#""4 apples""#,
            r#"`/a`: found the string "4 apples", expected a number"#,
        ),
        (
            r#"{"type":"boolean"}"#,
            r#""True""#,
            r#"`/a`: found the string "True", expected a boolean; this is a boolean in a string: pass true or false itself"#,
        ),
        (
            r#"{"anyOf":[{"type":"integer"},{"type":"null"}]}"#,
            r#""7""#,
            r#"`/a`: found the string "7", expected an integer or null; this is a number in a string: pass the number itself"#,
        ),
    ]);
}

#[test]
fn members_that_are_missing_or_unknown_are_named() {
    let schema = r##"{"type":"object","required":["path"],"additionalProperties":false,
        "properties":{"path":{"type":"string"},"max_results":{"type":"integer"},
        "options":{"$ref":"#/$defs/options"}},
        "$defs":{"options":{"properties":{"recursive":{}},"additionalProperties":false}}}"##;
    for (arguments, expected) in [
        ("{}", "the arguments: the required member `path` is missing"),
        (
            r#"{"path":"x","maxResults":1}"#,
            r#"the arguments: the member `maxResults` (did you mean `max_results`?) is not known; known are "max_results", "options", "path""#,
        ),
        (
            r#"{"path":"x","options":{"recursiv":true,"zzz":1}}"#,
            r#"`/options`: the members `recursiv` (did you mean `recursive`?), `zzz` are not known; known are "recursive""#,
        ),
        (
            r#"{"file":"x","n":1,"o":1,"p":1}"#,
            r#"(1) the arguments: the members `file`, `n`, `o` and 1 more are not known; known are "max_results", "options", "path"; (2) the arguments: the required member `path` is missing"#,
        ),
    ] {
        assert_eq!(said(schema, arguments), expected);
    }
    let unevaluated = r#"{"properties":{"a":{}},"unevaluatedProperties":false}"#;
    assert_eq!(
        said(unevaluated, r#"{"aa":1}"#),
        r#"the arguments: the member `aa` (did you mean `a`?) is not known; known are "a""#
    );
}

#[test]
fn alternatives_are_told_briefly() {
    let shapes = r#"{"oneOf":[
        {"type":"object","required":["radius"],"properties":{"kind":{"const":"circle"},"radius":{"type":"number"}}},
        {"type":"object","required":["width"],"properties":{"kind":{"const":"square"},"width":{"type":"number"}}},
        {"type":"string"}]}"#;
    all(&[
        (
            shapes,
            r#"{"kind":"square","width":"3"}"#,
            r#"`/a/width`: found the string "3", expected a number; this is a number in a string: pass the number itself"#,
        ),
        (
            shapes,
            r#"{"kind":"oval"}"#,
            r#"`/a`: found an object of 1 member, which fits none of the alternatives: [`/a/kind`: found the string "oval", expected "circle"], or [`/a/kind`: found the string "oval", expected "square"]"#,
        ),
        (
            shapes,
            "5",
            "`/a`: found the number 5, expected an object or a string",
        ),
        (
            r#"{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"integer"}}]}"#,
            r#"[1,"2"]"#,
            r#"`/a/1`: found the string "2", expected an integer; this is a number in a string: pass the number itself"#,
        ),
        (
            r#"{"oneOf":[{"minimum":1},{"minimum":2}]}"#,
            "3",
            "`/a`: found the number 3, expected a value that fits exactly one of the alternatives, and it fits several",
        ),
    ]);
}

#[test]
fn what_is_told_of_arguments_is_short_and_visible() {
    let secret = "s".repeat(1000);
    let cut = "s".repeat(40);
    assert_eq!(
        said_of(r#"{"type":"integer"}"#, &format!("\"{secret}\"")),
        format!("`/a`: found the string \"{cut}…\", expected an integer")
    );
    assert_eq!(
        said_of(
            r#"{"type":"integer"}"#,
            r#""a\u202eb\u0000\ud83d\ude00\"c""#
        ),
        "`/a`: found the string \"a\\u{202e}b\\u{0}😀\\\"c\", expected an integer"
    );
    let name = format!("{}\u{200b}", "n".repeat(55));
    let schema = r#"{"additionalProperties":{"type":"integer"}}"#;
    assert_eq!(
        said(schema, &format!(r#"{{"{name}":null}}"#)),
        format!(
            "`/{}\\u{{200b}}`: found null, expected an integer",
            "n".repeat(55)
        )
    );
    let deep = format!(r#"{{"{}":null}}"#, "d".repeat(500));
    assert_eq!(
        said(schema, &deep),
        format!("`…{}`: found null, expected an integer", "d".repeat(120))
    );
}

#[test]
fn at_most_five_errors_and_two_kibibytes_are_told() {
    let schema = r#"{"additionalProperties":{"type":"integer"}}"#;
    let members: Vec<String> = (0..8).map(|n| format!(r#""m{n}":null"#)).collect();
    let arguments = format!("{{{}}}", members.join(","));
    let expected = "(1) `/m0`: found null, expected an integer; (2) `/m1`: found null, expected an integer; \
        (3) `/m2`: found null, expected an integer; (4) `/m3`: found null, expected an integer; \
        (5) `/m4`: found null, expected an integer; and 3 more";
    assert_eq!(said(schema, &arguments), expected);
    let many: Vec<Value> = (0..20)
        .map(|n| format!("{n}-{}", "v".repeat(300)).into())
        .collect();
    let property = serde_json::json!({ "enum": many }).to_string();
    let properties: Vec<String> = (0..8).map(|n| format!(r#""m{n}":{property}"#)).collect();
    let schema = format!(r#"{{"properties":{{{}}}}}"#, properties.join(","));
    let told = said(&schema, &arguments);
    assert!(told.len() <= 2048, "{}", told.len());
    assert!(told.starts_with("(1) `/m0`: found null, expected one of \"0-vvv"));
    assert!(told.ends_with("; and 5 more"), "{told}");
}
