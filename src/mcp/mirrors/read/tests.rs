use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// What is mirrored by a tool with this `inputSchema`.
fn read(schema: &str) -> Result<Mirrors, Invalid> {
    let part = Scanner::new(schema.as_bytes(), Rules::Loose)?.value()?;
    if !Mirrors::may_be_in(schema) {
        assert_eq!(Mirrors::read(part).unwrap_or_default(), Mirrors::default());
        return Ok(Mirrors::default());
    }
    Mirrors::read(part)
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

/// Schemas and what looks like them, with annotations everywhere.
fn schema() -> impl Strategy<Value = Value> {
    let kinds = vec!["string", "integer", "boolean", "number"];
    let leaf = (prop::sample::select(kinds), "[A-D ]{1,2}")
        .prop_map(|(kind, header)| json!({"type": kind, KEY: header}));
    let leaf = prop_oneof![leaf, Just(json!({"type": "string"})), Just(json!(true))];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let words = vec![
            "items",
            "anyOf",
            "not",
            "default",
            "x-other",
            "$defs",
            "x-mcp-header",
        ];
        let named = prop::collection::hash_map("[ab]", inner.clone(), 0..3);
        (
            named.clone(),
            prop::sample::select(words),
            inner,
            any::<bool>(),
        )
            .prop_map(|(named, word, other, add)| {
                let mut schema = json!({"type": "object", "properties": named});
                if add {
                    schema[word] = other;
                }
                schema
            })
    })
}

/// The paths of annotations that are reachable through `properties`, and whether any is misplaced or malformed.
fn expected(schema: &Value, path: &str, found: &mut Vec<String>, sound: &mut bool) {
    if !schema.is_object() {
        return;
    }
    if let Some(header) = schema.get(KEY) {
        let typed = TYPES.iter().any(|kind| schema["type"] == **kind);
        let header = header.as_str().filter(|name| !name.contains(' '));
        *sound &= typed && header.is_some() && !path.is_empty();
        found.push(format!(
            "mcp-param-{}={path}",
            header.unwrap_or_default().to_lowercase()
        ));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{}{name}", if path.is_empty() { "" } else { "/" });
        expected(property, &path, found, sound);
    }
    // What stands elsewhere is sound only if nothing is annotated in it.
    for word in ["items", "anyOf", "not"] {
        let mut elsewhere = Vec::new();
        expected(&schema[word], "", &mut elsewhere, sound);
        *sound &= elsewhere.is_empty();
    }
    for (_, schema) in schema["$defs"].as_object().into_iter().flatten() {
        let mut elsewhere = Vec::new();
        expected(schema, "", &mut elsewhere, sound);
        *sound &= elsewhere.is_empty();
    }
}

proptest! {
    /// A walk over values finds the same.
    #[test]
    fn any_schema_is_read_as_it_stands(schema in schema()) {
        let (mut paths, mut sound) = (Vec::new(), true);
        expected(&schema, "", &mut paths, &mut sound);
        let headers: HashSet<_> = paths.iter().map(|line| line.split('=').next()).collect();
        sound &= headers.len() == paths.len();
        let read = read(&schema.to_string());
        prop_assert_eq!(read.is_ok(), sound, "{} {:?}", schema, read);
        if sound {
            let mut read = found(&schema.to_string());
            read.sort();
            paths.sort();
            prop_assert_eq!(read, paths);
        }
    }

    /// The fast path misses no spelling of the key.
    #[test]
    fn no_escape_hides_an_annotation(escaped: [bool; 12]) {
        let letter = |(letter, escape): (char, bool)| match escape {
            true => format!("\\u{:04X}", u32::from(letter)),
            false => letter.to_string(),
        };
        let key: String = KEY.chars().zip(escaped).map(letter).collect();
        let schema = format!(r#"{{"properties":{{"a":{{"type":"string","{key}":"A"}}}}}}"#);
        prop_assert_eq!(found(&schema), ["mcp-param-a=a"]);
    }
}
