use std::time::Duration;

use super::*;

mod attacks;
mod bounds;
mod dialects;
mod properties;

/// A tool's schema.
fn schema_of(text: &str) -> Arc<Schema> {
    Arc::new(Schema::of(text.into(), Some(0..text.len())))
}

/// What a call with these arguments is answered without a thread of its own, once the schema is compiled.
fn now(schemas: &Schemas, schema: &str, arguments: Option<&str>) -> Option<Result<(), Refusal>> {
    let text = schema;
    let schema = schema_of(text);
    let call = Arguments {
        tool: "t",
        schema: &schema,
        text: arguments,
    };
    assert_eq!(schemas.check_now(call), None, "it is not compiled");
    schemas.compile(text, schema.digest());
    schemas.check_now(call)
}

fn check(schema: &str, arguments: &str) -> Result<(), Refusal> {
    let checked = now(&Schemas::default(), schema, Some(arguments));
    checked.expect("cheap to check")
}

/// Checks with all the effort there is.
async fn check_all(schema: &str, arguments: &str) -> Result<(), Refusal> {
    let arguments = Arguments {
        tool: "t",
        schema: &schema_of(schema),
        text: Some(arguments),
    };
    let deadline = Deadline::after(Duration::from_secs(100));
    Arc::new(Schemas::default())
        .check(arguments, deadline)
        .await
}

fn fits(schema: &str, arguments: &str) -> bool {
    match check(schema, arguments) {
        Ok(()) => true,
        Err(refusal) if refusal.code == Code::ArgumentsInvalid => false,
        Err(refusal) => panic!("{schema}: {}", refusal.public),
    }
}

/// Why a schema cannot be used.
fn unusable(schema: &str) -> String {
    let refusal = check(schema, "{}").expect_err("not usable");
    assert_eq!(refusal.code, Code::SchemaUnusable, "{schema}");
    let public = refusal.public;
    let words = public.strip_prefix("the input schema of `t` cannot be used: ");
    words.expect("it says of what").to_owned()
}

#[test]
fn a_refusal_names_the_tool_and_the_next_step() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;
    let refusal = check(schema, r#"{"n":"1"}"#).expect_err("a string");
    assert_eq!(
        refusal.text(),
        "catalog.arguments_invalid: the arguments of `t` do not fit its input schema: `/n`: found the string \"1\", \
         expected an integer; this is a number in a string: pass the number itself; correct the arguments and call again"
    );
}

#[test]
fn a_tool_without_a_schema_takes_any_object() {
    let schema = Arc::new(Schema::of(r#"{"name":"t"}"#.into(), None));
    for text in [None, Some("{}"), Some(r#"{"a":{"b":[1]}}"#)] {
        let arguments = Arguments {
            tool: "t",
            schema: &schema,
            text,
        };
        assert_eq!(Schemas::default().check_now(arguments), Some(Ok(())));
    }
    assert_eq!(check("{}", r#"{"a":1}"#), Ok(()));
}

#[test]
fn missing_arguments_are_an_empty_object() {
    let schemas = Schemas::default();
    assert_eq!(now(&schemas, r#"{"type":"object"}"#, None), Some(Ok(())));
    let refused = now(&schemas, r#"{"required":["a"]}"#, None).expect("cheap");
    let refusal = refused.expect_err("it is missing");
    assert_eq!(refusal.code, Code::ArgumentsInvalid);
}

#[test]
fn equal_schemas_are_compiled_once_and_a_bounded_number_is_kept() {
    let schemas = Schemas::default();
    now(&schemas, r#"{"type":"object"}"#, None);
    let definition = r#"{"inputSchema":{"type":"object"},"name":"a"}"#;
    let other = Arc::new(Schema::of(definition.into(), Some(15..32)));
    assert_eq!(other.text(), Some(r#"{"type":"object"}"#));
    other.digest();
    let arguments = Arguments {
        tool: "a",
        schema: &other,
        text: None,
    };
    assert_eq!(
        schemas.check_now(arguments),
        Some(Ok(())),
        "of another tool"
    );
    schemas.kept.run_pending_tasks();
    assert_eq!(schemas.kept.entry_count(), 1);
    let long = "d".repeat(1 << 20);
    for n in 0..50 {
        let schema = format!(r#"{{"title":"{n}","description":"{long}"}}"#);
        schemas.compile(&schema, schema_of(&schema).digest());
    }
    schemas.kept.run_pending_tasks();
    assert!(schemas.kept.weighted_size() <= KEPT_BYTES);
    assert!((10..33).contains(&schemas.kept.entry_count()));
}

#[test]
fn a_schema_that_cannot_be_used_says_why() {
    let cases = [
        ("[]", "it is not an object"),
        ("true", "it is not an object"),
        (
            r#"{"properties":[]}"#,
            "it is not valid: `/properties`: value is not of type \"object\"",
        ),
        (
            r#"{"type":"strin"}"#,
            "it is not valid: `/type`: value is not valid under any of the schemas listed in the 'anyOf' keyword",
        ),
        (
            r#"{"properties":{"a":{"pattern":"("}}}"#,
            "it is not valid: `/properties/a/pattern`: value is not a \"regex\"",
        ),
        (
            r##"{"$ref":"#/$defs/none"}"##,
            "it is not valid: Pointer '/$defs/none' does not exist",
        ),
        (
            r#"{"maximum":1e400}"#,
            "it cannot be read: number out of range at line 1 column 16",
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(unusable(schema), expected, "{schema}");
    }
}

#[test]
fn nothing_outside_of_the_document_is_looked_for() {
    for uri in [
        "http://127.0.0.1:1/s.json",
        "https://example.com/s.json#/a",
        "file:///etc/passwd",
        "other.json",
        "urn:example:a",
        "//example.com/s",
    ] {
        for schema in [
            format!(r#"{{"$ref":"{uri}"}}"#),
            format!(r#"{{"properties":{{"a":{{"items":{{"$ref":"{uri}"}}}}}}}}"#),
            format!(r#"{{"$dynamicRef":"{uri}"}}"#),
        ] {
            let why = unusable(&schema);
            assert!(
                why.contains("leads outside of it, and nothing is fetched"),
                "{schema}: {why}"
            );
        }
    }
}

#[test]
fn numbers_are_judged_as_they_are_spelled() {
    let of = |keyword: &str, number: &str| {
        fits(
            &format!(r#"{{"properties":{{"a":{keyword}}}}}"#),
            &format!(r#"{{"a":{number}}}"#),
        )
    };
    let integer = r#"{"type":"integer"}"#;
    for (number, expected) in [
        ("9007199254740993", true),
        ("18446744073709551615", true),
        ("-9223372036854775808", true),
        ("1.0", true),
        ("1e3", true),
        ("1.5", false),
        ("1e-1", false),
    ] {
        assert_eq!(of(integer, number), expected, "{number}");
    }
    // As f64, both are 2^53.
    assert!(!of(r#"{"maximum":9007199254740992}"#, "9007199254740993"));
    assert!(of(r#"{"maximum":9007199254740993}"#, "9007199254740993"));
    assert!(!of(
        r#"{"exclusiveMinimum":9007199254740993}"#,
        "9007199254740993"
    ));
    assert!(!of(r#"{"const":9007199254740992}"#, "9007199254740993"));
    assert!(!of(r#"{"enum":[9007199254740992]}"#, "9007199254740993"));
    assert!(!of(r#"{"multipleOf":2}"#, "9007199254740993"));
    assert!(of(r#"{"multipleOf":0.01}"#, "19.99"));
    assert!(of(r#"{"const":1}"#, "1.0"));
    // Spelled with a fraction or an exponent, they are doubles.
    let whole = r#"{"maximum":9007199254740992}"#;
    assert!(of(whole, "9007199254740993.0"));
    assert!(!of(whole, "9007199254740994.0"));
    // Scans refuse it before; here it is an error, and no panic.
    assert!(!of("{}", "1e400"));
}

/// Prints what one check takes; nothing is asserted of it, since it depends on the machine.
#[test]
#[ignore = "a measurement, for `cargo test --release --lib six_fields -- --ignored --nocapture`"]
#[expect(clippy::print_stdout, reason = "it is what the test is for")]
fn six_fields() {
    const CALLS: u32 = 1_000_000;
    let schema = r#"{"type":"object","required":["path"],"additionalProperties":false,"properties":{
        "path":{"type":"string","minLength":1},"mode":{"enum":["read","write"]},
        "limit":{"type":"integer","minimum":1,"maximum":1000},"recursive":{"type":"boolean"},
        "tags":{"type":"array","items":{"type":"string"},"maxItems":8},
        "since":{"type":["string","null"],"pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}}}"#;
    let arguments = r#"{"path":"/srv/reports","mode":"read","limit":50,"recursive":true,
        "tags":["a","b"],"since":"2026-11-30"}"#;
    let (schemas, text) = (Schemas::default(), schema);
    let schema = schema_of(text);
    schemas.compile(text, schema.digest());
    let call = Arguments {
        tool: "t",
        schema: &schema,
        text: Some(arguments),
    };
    let begin = std::time::Instant::now();
    for _ in 0..CALLS {
        assert_eq!(schemas.check_now(std::hint::black_box(call)), Some(Ok(())));
    }
    println!(
        "arguments of six fields: {:?} a call",
        begin.elapsed() / CALLS
    );
}
