//! Any schema and any arguments.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A schema, and values that fit it.
fn schema_and_value() -> impl Strategy<Value = (Value, Value)> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|n| (json!({ "type": "integer", "minimum": n }), json!(n))),
        any::<u64>().prop_map(|n| (json!({ "maximum": n }), json!(n))),
        any::<bool>().prop_map(|b| (json!({ "type": "boolean" }), json!(b))),
        ".{0,12}".prop_map(|text: String| {
            let length = text.chars().count();
            (
                json!({ "type": "string", "minLength": length, "maxLength": length }),
                json!(text),
            )
        }),
        Just((json!({ "type": ["null", "object"] }), json!(null))),
        any::<f64>()
            .prop_filter("finite", |n| n.is_finite())
            .prop_map(|n| (json!({ "type": "number", "enum": [n, "other"] }), json!(n))),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::btree_map("[a-z]{1,6}", inner.clone(), 0..4).prop_map(|members| {
                let (mut properties, mut values) = (json!({}), json!({}));
                for (name, (schema, value)) in &members {
                    properties[name] = schema.clone();
                    values[name] = value.clone();
                }
                let required: Vec<_> = members.keys().collect();
                let schema = json!({ "type": "object", "properties": properties, "required": required,
                    "additionalProperties": false });
                (schema, values)
            }),
            inner.clone().prop_map(|(schema, value)| {
                (json!({ "type": "array", "items": schema, "maxItems": 1 }), json!([value]))
            }),
            inner.clone().prop_map(|(schema, value)| {
                (json!({ "anyOf": [{ "const": { "no": 1 } }, schema] }), value)
            }),
            inner.prop_map(|(schema, value)| {
                (json!({ "$ref": "#/$defs/a", "$defs": { "a": {} }, "allOf": [schema] }), value)
            }),
        ]
    })
}

/// Text that is nearly a schema.
fn near_schema() -> impl Strategy<Value = String> {
    let pieces = [
        r#"{"type":"object"}"#,
        r##"{"$ref":"#"}"##,
        r##"{"$ref":"#/$defs/a"}"##,
        "{}",
        "true",
        "false",
        "1",
        r#""a""#,
        r#"{"pattern":"(?=a)*+"}"#,
        r#"{"pattern":"[\\d-z]\\p{L}\\cA"}"#,
        r#"{"enum":[]}"#,
        r#"{"multipleOf":1e-300}"#,
        r#"{"minLength":-1}"#,
        r#"{"minimum":1.7976931348623157e308}"#,
        r##"{"$dynamicRef":"#n"}"##,
        r#"{"$id":"http://[::1","$anchor":"a/b"}"#,
        r#"{"$schema":"https://json-schema.org/draft/2019-09/schema"}"#,
        r#"{"unevaluatedProperties":false}"#,
        r#"{"dependencies":{"a":["b"]}}"#,
        r#"{"$vocabulary":{"x":true}}"#,
    ];
    let keywords = [
        "allOf",
        "not",
        "properties",
        "items",
        "$defs",
        "if",
        "$ref",
        "contains",
        "type",
        "required",
        "patternProperties",
        "propertyNames",
        "additionalProperties",
        "unevaluatedItems",
        "dependentSchemas",
        "const",
    ];
    let piece = prop::sample::select(pieces.to_vec()).prop_map(str::to_owned);
    piece.prop_recursive(4, 24, 3, move |inner| {
        let keyword = prop::sample::select(keywords.to_vec());
        prop_oneof![
            proptest::collection::vec((keyword, inner.clone()), 1..3).prop_map(|members| {
                let members: Vec<_> = members
                    .iter()
                    .map(|(key, value)| format!(r#""{key}":{value}"#))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
            proptest::collection::vec(inner.clone(), 0..3)
                .prop_map(|items| format!("[{}]", items.join(","))),
            inner.prop_map(|schema| format!(r#"{{"a":{schema}}}"#)),
        ]
    })
}

proptest! {
    #[test]
    fn values_that_fit_are_let_through((schema, value) in schema_and_value()) {
        let schema = json!({ "properties": { "a": schema }, "$defs": { "a": {} } }).to_string();
        prop_assert_eq!(check(&schema, &json!({ "a": value }).to_string()), Ok(()));
    }

    #[test]
    fn any_schema_is_answered(schema in near_schema(), arguments in near_schema()) {
        let schemas = Schemas::default();
        let refused = now(&schemas, &schema, Some(&format!(r#"{{"a":{arguments}}}"#)));
        let text = refused.and_then(Result::err).map(|refusal| refusal.public).unwrap_or_default();
        prop_assert!(!text.contains("failed") && !text.contains("could not be compiled"), "{}: {}", schema, text);
        prop_assert!(text.len() < 2048);
    }

    #[test]
    fn any_bytes_are_answered(schema in ".{0,40}", arguments in ".{0,40}") {
        now(&Schemas::default(), &schema, Some(&arguments));
    }
}
