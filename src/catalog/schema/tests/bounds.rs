//! Schemas that ask for too much. What is bounded is counted in steps, so nothing here looks at a clock.

use serde_json::{Map, Value, json};

use super::*;

/// Definitions `a0` to `a{n}`, each made by `link` of a reference to the next, the last one `leaf`.
pub(super) fn chain(n: usize, link: impl Fn(Value) -> Value, leaf: Value) -> String {
    let mut defs = Map::new();
    for at in 0..n {
        let next = json!({ "$ref": format!("#/$defs/a{}", at + 1) });
        defs.insert(format!("a{at}"), link(next));
    }
    defs.insert(format!("a{n}"), leaf);
    json!({ "$ref": "#/$defs/a0", "$defs": defs }).to_string()
}

fn nested(levels: usize, leaf: &str) -> String {
    let open = r#"{"x":"#.repeat(levels);
    format!("{open}{leaf}{}", "}".repeat(levels))
}

#[test]
fn references_that_double_are_refused_before_they_run() {
    let twice = |next: Value| json!({ "allOf": [next.clone(), next] });
    let unfolds = "it has more than 100000 checks of one value";
    for leaf in [json!({}), json!(true), json!({ "type": "object" })] {
        assert_eq!(unusable(&chain(60, twice, leaf)), unfolds);
    }
    assert!(fits(&chain(10, twice, json!({ "type": "object" })), "{}"));
    let anchors = r##"{"allOf":[{"$ref":"#a"},{"$ref":"#a"}],"$defs":{
        "a":{"$anchor":"a","allOf":[{"$ref":"b%2Ejson"},{"$ref":"#/%24defs/b"}]},
        "b":{"allOf":[{"$ref":"#c"},{"$ref":"#c"}]},"c":{"$anchor":"c"}}}"##;
    assert!(unusable(anchors).contains("leads outside"));
}

#[test]
fn a_long_chain_of_references_does_not_use_up_the_stack() {
    let one = |next: Value| json!({ "allOf": [next] });
    let deep = "it has more than 256 subschemas inside one another";
    for links in [300, 5000] {
        let why = unusable_in_full(&chain(links, one, json!({})));
        assert!(
            why == deep || why == "it has more than 4096 references",
            "{why}"
        );
    }
    assert!(fits(&chain(100, one, json!({ "type": "object" })), "{}"));
    let child = |next: Value| json!({ "properties": { "x": next } });
    let schema = chain(1000, child, json!({ "type": "string" }));
    assert!(fits(&schema, &nested(60, "1")));
}

/// Why a schema of any length cannot be used.
pub(super) fn unusable_in_full(schema: &str) -> String {
    match compiled::Compiled::of(schema) {
        Ok(_) => "it can be".to_owned(),
        Err(unusable) => unusable.to_string(),
    }
}

#[tokio::test]
async fn a_tree_that_is_searched_again_at_each_level_is_given_up() {
    let schema = r##"{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"integer"},
        {"type":"object","properties":{"x":{"$ref":"#/$defs/a"}},"required":["x"],"minProperties":1},
        {"type":"object","properties":{"x":{"$ref":"#/$defs/a"}},"required":["x"],"maxProperties":1}]}}}"##;
    assert!(fits(schema, &nested(60, "1")));
    assert!(!fits(schema, &nested(3, "true")));
    // To say what is wrong, each level is gone through twice.
    assert_eq!(
        now(&Schemas::default(), schema, Some(&nested(60, "true"))),
        None
    );
    let refusal = check_all(schema, &nested(60, "true")).await;
    let refusal = refusal.expect_err("a leaf that no alternative takes");
    assert_eq!(refusal.code, Code::ArgumentsInvalid);
    assert!(
        refusal
            .public
            .ends_with("what is wrong takes too long to find out")
    );
}

#[tokio::test]
async fn a_validation_that_spends_all_its_steps_is_refused() {
    let options: Vec<Value> = (0..300)
        .map(|n| json!({ "required": [format!("r{n}")] }))
        .collect();
    let schema = json!({ "properties": { "a": { "items": { "anyOf": options } } } }).to_string();
    let items = vec![r#"{"r299":1}"#; 60_000].join(",");
    let arguments = format!(r#"{{"a":[{items}]}}"#);
    assert_eq!(now(&Schemas::default(), &schema, Some(&arguments)), None);
    let refusal = check_all(&schema, &arguments).await.expect_err("too much");
    assert_eq!(refusal.code, Code::SchemaUnusable);
    assert_eq!(
        refusal.public,
        "the input schema of `t` cannot be used: checking these arguments takes too many steps"
    );
}

#[test]
fn recursive_schemas_work_and_circles_end() {
    let tree = r##"{"type":"object","properties":{"left":{"$ref":"#"},"right":{"$ref":"#"},"v":{"type":"integer"}},
        "additionalProperties":false}"##;
    assert!(fits(tree, r#"{"left":{"v":1,"right":{}},"right":{"v":2}}"#));
    assert!(!fits(tree, r#"{"left":{"v":1,"right":{"v":"x"}}}"#));
    for circle in [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},
            "b":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}}}"##,
        r##"{"not":{"$ref":"#"}}"##,
    ] {
        let _ =
            check(circle, "{}").map_err(|refusal| assert_eq!(refusal.code, Code::ArgumentsInvalid));
    }
}

#[test]
fn dynamic_references_end_at_the_outermost_anchor() {
    let schema = r##"{"$id":"https://example.com/strict","$ref":"tree","$dynamicAnchor":"node",
        "unevaluatedProperties":false,"$defs":{"tree":{"$id":"https://example.com/tree","$dynamicAnchor":"node",
        "type":"object","properties":{"data":{},"children":{"type":"array","items":{"$dynamicRef":"#node"}}}}}}"##;
    assert!(fits(schema, r#"{"children":[{"data":1,"children":[]}]}"#));
    assert!(!fits(schema, r#"{"children":[{"daat":1}]}"#));
}

#[test]
fn patterns_take_linear_time_where_they_can() {
    let a = "a".repeat(30_000);
    for pattern in ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(x+x+)+y"] {
        let schema = format!(r#"{{"properties":{{"a":{{"pattern":"{pattern}"}}}}}}"#);
        assert!(!fits(&schema, &format!(r#"{{"a":"{a}!"}}"#)), "{pattern}");
    }
}

#[test]
fn patterns_that_go_back_are_bounded() {
    let of = |pattern: &str, text: &str| {
        let schema = format!(r#"{{"properties":{{"a":{{"pattern":"{pattern}"}}}}}}"#);
        check(&schema, &format!(r#"{{"a":"{text}"}}"#))
    };
    assert_eq!(of("^(?!admin)[a-z]+$", "user"), Ok(()));
    assert!(of("^(?!admin)[a-z]+$", "administrator").is_err());
    assert_eq!(of("^(a|b)\\\\1$", "aa"), Ok(()));
    assert!(of("^(a|b)\\\\1$", "ab").is_err());
    let refusal = of("^(?:(?=a)a|a)*$", &format!("{}!", "a".repeat(50))).expect_err("no end");
    assert_eq!(refusal.code, Code::ArgumentsInvalid);
    let cut = "a".repeat(40);
    assert_eq!(
        refusal.public,
        format!(
            "the arguments of `t` do not fit its input schema: `/a`: found the string \"{cut}…\", expected a string \
             that its pattern can be matched against within the allowed steps"
        )
    );
}

#[tokio::test]
async fn many_strings_for_a_pattern_that_goes_back_are_given_up() {
    let schema = r#"{"properties":{"a":{"items":{"pattern":"^(?:(?=a)a|a)*$"}}}}"#;
    let items = vec![format!("\"{}!\"", "a".repeat(50)); 6000].join(",");
    let refusal = check_all(schema, &format!(r#"{{"a":[{items}]}}"#)).await;
    let refusal = refusal.expect_err("too much");
    assert!(
        refusal.public.ends_with("takes too many steps"),
        "{}",
        refusal.public
    );
}

#[test]
fn patterns_share_their_memory() {
    let schema = |count: usize| {
        let patterns = (0..count).map(|n| {
            (
                format!("p{n}"),
                json!({ "pattern": format!("^(\\p{{L}}{{50}}){{50}}{n}$") }),
            )
        });
        json!({ "properties": patterns.collect::<Map<_, _>>() }).to_string()
    };
    assert!(unusable_in_full(&schema(1)).contains("is not a \"regex\""));
    let small = |count: usize| {
        let patterns = (0..count).map(|n| {
            (
                format!("p{n}"),
                json!({ "pattern": format!("^[a-z]{{{n}}}-\\d+(x|y)*$") }),
            )
        });
        json!({ "properties": patterns.collect::<Map<_, _>>() }).to_string()
    };
    assert_eq!(unusable_in_full(&small(200)), "it can be");
    assert_eq!(
        unusable_in_full(&small(1025)),
        "it has more than 1024 patterns"
    );
}

#[test]
fn schemas_of_many_subschemas_or_levels_are_refused() {
    let many: Map<String, Value> = (0..100_001).map(|n| (format!("p{n}"), json!({}))).collect();
    let schema = json!({ "properties": many }).to_string();
    assert_eq!(
        unusable_in_full(&schema),
        "it has more than 100000 subschemas"
    );
    let deep = format!("{}{{}}{}", r#"{"items":"#.repeat(130), "}".repeat(130));
    assert!(unusable(&deep).starts_with("it cannot be read: recursion limit exceeded"));
    let fair = format!("{}{{}}{}", r#"{"items":"#.repeat(120), "}".repeat(120));
    assert!(fits(&fair, "{}"));
    let not = format!("{}{{}}{}", r#"{"not":"#.repeat(120), "}".repeat(120));
    assert!(fits(&not, "{}"));
}

#[tokio::test]
async fn a_schema_of_5_mib_works() {
    let text = "d".repeat(140);
    let properties: Map<String, Value> = (0..30_000)
        .map(|n| {
            (
                format!("p{n}"),
                json!({ "type": "string", "description": text }),
            )
        })
        .collect();
    let schema = json!({ "properties": properties, "additionalProperties": false }).to_string();
    assert!(schema.len() > 5 << 20, "{}", schema.len());
    assert_eq!(check_all(&schema, r#"{"p7":"x"}"#).await, Ok(()));
    let refusal = check_all(&schema, r#"{"P_0":"x"}"#)
        .await
        .expect_err("unknown");
    assert!(
        refusal
            .public
            .contains("the member `P_0` (did you mean `p0`?) is not known"),
        "{}",
        refusal.public
    );
    let options: Vec<String> = (0..400_000).map(|n| format!("option {n}")).collect();
    let schema = json!({ "properties": { "a": { "enum": options } } }).to_string();
    assert!(schema.len() > 5 << 20, "{}", schema.len());
    assert_eq!(check_all(&schema, r#"{"a":"option 399999"}"#).await, Ok(()));
    let refusal = check_all(&schema, r#"{"a":"x"}"#)
        .await
        .expect_err("none of them");
    assert!(
        refusal.public.ends_with(r#""option 9", 399990 more"#),
        "{}",
        refusal.public
    );
    let long = format!(r#"{{"description":"{}"}}"#, "d".repeat(MAX_BYTES));
    let refusal = check_all(&long, "{}").await.expect_err("too long");
    assert!(refusal.public.ends_with("it is longer than 8388608 bytes"));
}

#[tokio::test]
async fn large_arguments_are_checked_off_the_runtime() {
    let schema = r#"{"properties":{"a":{"items":{"type":"integer"}}}}"#;
    let arguments = format!(r#"{{"a":[{}1]}}"#, "1,".repeat(40_000));
    assert_eq!(now(&Schemas::default(), schema, Some(&arguments)), None);
    assert_eq!(check_all(schema, &arguments).await, Ok(()));
    let wrong = arguments.replace("1]", "\"1\"]");
    let refusal = check_all(schema, &wrong).await.expect_err("a string");
    assert!(
        refusal
            .public
            .contains("`/a/40000`: found the string \"1\""),
        "{}",
        refusal.public
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_does_not_wait_past_its_end_for_a_place() {
    let aside = Aside::default();
    let _places = aside.take_all().await;
    let deadline = Deadline::after(Duration::from_secs(1));
    assert_eq!(aside.run(|| (), |()| (), deadline).await, None);
}
