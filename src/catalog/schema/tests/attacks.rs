//! Schemas and arguments that are small and ask for much. What is bounded is counted, so nothing here looks at a clock.

use serde_json::{Map, Value, json};

use super::{
    bounds::{chain, unusable_in_full},
    *,
};

const STEPS: &str =
    "the input schema of `t` cannot be used: checking these arguments takes too many steps";

/// A schema of the member `a`.
fn of_a(schema: &Value) -> String {
    json!({ "properties": { "a": schema } }).to_string()
}

/// One subschema, applied to the member `a` so many times.
fn repeatedly(times: usize, schema: &Value) -> String {
    let all = vec![json!({ "$ref": "#/$defs/u" }); times];
    json!({ "properties": { "a": { "allOf": all } }, "$defs": { "u": schema } }).to_string()
}

async fn too_many_steps(schema: &str, arguments: &Value) {
    let arguments = arguments.to_string();
    let at_once = now(&Schemas::default(), schema, Some(&arguments));
    assert_eq!(at_once, None, "{schema:.200}");
    let refusal = check_all(schema, &arguments).await.expect_err("too much");
    assert_eq!(refusal.public, STEPS, "{schema:.200}");
}

#[tokio::test]
async fn patterns_are_charged_for_what_their_engine_does() {
    let long = json!({ "a": "ab".repeat(30_000) });
    for pattern in [
        "[ab]*a[ab]{3000}c",
        "(?:[ab]*a[ab]{100}){80}c",
        "(?=[ab]*c)x",
        "^(?:[ab](?=[ab]*[ab]))*c",
        "(?x)[ab]*a[ab]{3} # [",
    ] {
        too_many_steps(&of_a(&json!({ "pattern": pattern })), &long).await;
    }
    let heavy = of_a(&json!({ "pattern": "[ab]*a[ab]{3000}c" }));
    assert!(!fits(&heavy, r#"{"a":"ab"}"#));
    let ahead = of_a(&json!({ "pattern": "^(?!\\s*$)(?!.*secret).+" }));
    assert_eq!(check_all(&ahead, &long.to_string()).await, Ok(()));
    let all = repeatedly(900, &json!({ "pattern": "^[ab]*(c|d|e)?$" }));
    too_many_steps(&all, &long).await;
}

#[test]
fn strings_without_a_pattern_do_not_pay_for_the_patterns_of_others() {
    let schema = json!({ "properties": {
        "path": { "pattern": "^(?!.*\\.\\.)[a-z./-]{1,255}$" },
        "content": { "minLength": 1, "maxLength": 100_000 },
    } });
    let content = "a".repeat(60_000);
    let arguments = json!({ "path": "docs/a.md", "content": content }).to_string();
    assert!(fits(&schema.to_string(), &arguments));
}

#[tokio::test]
async fn names_of_members_are_charged_for_all_patterns() {
    let patterns = (0..100).map(|n| (format!("^p{n}x{{1,400}}$"), json!({})));
    let patterns = patterns.collect::<Map<_, _>>();
    let schema = json!({ "patternProperties": patterns, "additionalProperties": false });
    let schema = schema.to_string();
    let members = |count: usize| -> Value {
        let members =
            (0..count).map(|n| (format!("p{}{}", n % 100, "x".repeat(1 + n / 100)), json!(1)));
        members.collect::<Map<_, _>>().into()
    };
    too_many_steps(&schema, &members(2000)).await;
    assert_eq!(check_all(&schema, &members(20).to_string()).await, Ok(()));
}

#[tokio::test]
async fn comparing_takes_a_step_for_each_value() {
    let values = |last: u32| {
        let mut values = vec![1; 2000];
        values.push(last);
        json!(values)
    };
    let several: Vec<Value> = (5..15).map(values).collect();
    for (differ, value) in [
        (json!({ "not": { "const": values(2) } }), values(0)),
        (
            json!({ "not": { "enum": [values(2), values(3)] } }),
            values(0),
        ),
        (json!({ "uniqueItems": true }), json!(several)),
    ] {
        let arguments = json!({ "a": value });
        let once = of_a(&differ);
        assert_eq!(check_all(&once, &arguments.to_string()).await, Ok(()));
        too_many_steps(&repeatedly(5000, &differ), &arguments).await;
    }
}

#[tokio::test]
async fn unique_items_that_are_made_to_collide_are_told_apart() {
    let nested = |depth: usize, at: usize| {
        let mut value = json!([]);
        for _ in 0..depth {
            value = json!([value]);
        }
        let mut items = vec![json!([]); at];
        items.push(value);
        json!(items)
    };
    let mut items: Vec<Value> = (0..2000).map(|n| nested(n % 60, n / 60)).collect();
    let schema = of_a(&json!({ "uniqueItems": true }));
    let arguments = json!({ "a": items }).to_string();
    assert_eq!(check_all(&schema, &arguments).await, Ok(()));
    items.push(nested(7, 7));
    let arguments = json!({ "a": items }).to_string();
    let refusal = check_all(&schema, &arguments)
        .await
        .expect_err("two are equal");
    assert!(
        refusal.public.ends_with("expected items that all differ"),
        "{}",
        refusal.public
    );
}

#[tokio::test]
async fn what_errors_copy_is_bounded() {
    let many = |value: Value| json!({ "a": vec![value; 2000] }).to_string();
    let told = async |schema: Value, arguments: &str| {
        let schema = of_a(&json!({ "items": schema }));
        assert_eq!(now(&Schemas::default(), &schema, Some(arguments)), None);
        let refusal = check_all(&schema, arguments).await.expect_err("unfit");
        assert_eq!(refusal.code, Code::ArgumentsInvalid);
        let told = refusal.public.split_once("its input schema: ");
        told.expect("it says what").1.to_owned()
    };
    let excluded = json!({ "not": { "type": "integer", "default": vec![1; 200_000] } });
    assert_eq!(
        told(excluded, &many(json!(1))).await,
        "what is wrong takes too long to find out"
    );
    // One error is told where all of them are too much.
    let name = "r".repeat(1_000_000);
    let missing = told(json!({ "required": [name] }), &many(json!({}))).await;
    assert!(missing.starts_with("`/a/0`: the required member `rrrr"));
    assert!(missing.ends_with("…` is missing"), "{missing}");
    let options: Vec<Value> = (0..1000).map(|n| json!({ "const": n })).collect();
    let none = told(json!({ "anyOf": options }), &many(json!("x"))).await;
    assert!(none.starts_with("`/a/0`: found the string \"x\", which fits none of"));
    let long = "k".repeat(60_000);
    let path = json!({ "additionalProperties": { "items": { "type": "string" } } });
    let arguments = json!({ long: vec![1; 2000] });
    let refusal = check_all(&path.to_string(), &arguments.to_string()).await;
    let public = refusal.expect_err("numbers").public;
    assert!(public.ends_with("kkk/0`: found the number 1, expected a string"));
}

#[test]
fn nested_unevaluated_keywords_are_refused_before_they_are_compiled() {
    let refused = "it has more than 100000 subschemas to find what is unevaluated";
    for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
        let twice = |next: Value| json!({ "allOf": [next.clone(), next], keyword: false });
        let once = |next: Value| json!({ "allOf": [next], keyword: false });
        assert_eq!(unusable_in_full(&chain(12, twice, json!({}))), refused);
        assert_eq!(unusable_in_full(&chain(100, once, json!({}))), refused);
        assert_eq!(unusable_in_full(&chain(4, twice, json!({}))), "it can be");
    }
    let twice = |next: Value| json!({ "allOf": [next.clone(), next] });
    let chained = chain(10, twice, json!({}));
    let mut schema: Value = serde_json::from_str(&chained).expect("JSON");
    let each = json!({ "$ref": "#/$defs/a0", "unevaluatedProperties": false });
    let members = (0..50).map(|n| (format!("p{n}"), each.clone()));
    schema["properties"] = members.collect::<Map<_, _>>().into();
    assert_eq!(unusable_in_full(&schema.to_string()), refused);
}

#[test]
fn what_a_compiled_schema_would_hold_many_times_is_refused() {
    let inner = json!({ "default": vec![1; 100_000] });
    let refused = "it has more than 67108864 bytes that are kept twice";
    let excluded = (0..100).fold(inner.clone(), |inner, _| json!({ "not": inner }));
    assert_eq!(unusable_in_full(&excluded.to_string()), refused);
    let mut unknown = inner.clone();
    let (mut path, mut all) = (String::from("#"), Vec::new());
    for _ in 0..100 {
        unknown = json!({ "x": unknown });
        path.push_str("/x");
        all.push(json!({ "$ref": path }));
    }
    unknown["allOf"] = json!(all);
    assert_eq!(unusable_in_full(&unknown.to_string()), refused);
    assert_eq!(unusable_in_full(&inner.to_string()), "it can be");
}

#[tokio::test]
async fn numbers_that_are_divided_exactly_cost_more() {
    let fraction = of_a(&json!({ "items": { "multipleOf": 0.5 } }));
    let numbers = |count| json!({ "a": vec![1.5; count] });
    assert!(fits(&fraction, &numbers(100).to_string()));
    assert_eq!(
        check_all(&fraction, &numbers(2000).to_string()).await,
        Ok(())
    );
    too_many_steps(&fraction, &numbers(100_000)).await;
    let whole = of_a(&json!({ "items": { "multipleOf": 1 } }));
    assert!(!fits(&whole, &numbers(2000).to_string()));
}

#[test]
fn a_long_dialect_is_cut() {
    let schema = json!({ "$schema": "x\u{200b}".repeat(100_000) }).to_string();
    let words = unusable_in_full(&schema);
    assert!(words.starts_with("its `$schema` \"x\\u{200b}x"), "{words}");
    assert!(words.len() < 1200, "{}", words.len());
}
