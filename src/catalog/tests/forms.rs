//! What a digest is of: the value, not its spelling.

use super::*;

fn digest(tool: &str) -> [u8; 32] {
    let item = shown(List::Tools, &format!("[{tool}]")).remove(0).item;
    item.expect("a definition").digest
}

#[test]
fn everything_that_a_model_sees_is_in_the_digest() {
    const TOOL: &str = r#"{"name":"a","title":"t","description":"d","inputSchema":{"type":"object"},"outputSchema":{},"annotations":{"readOnlyHint":true},"icons":[{"src":"https://x/"}],"execution":{"taskSupport":"optional"},"_meta":{"k":1},"odd":1.0}"#;
    for (from, to) in [
        (r#""t""#, r#""T""#),
        (r#""d""#, r#""d ""#),
        (r#""object""#, r#""array""#),
        (r#""outputSchema":{}"#, r#""outputSchema":{"a":1}"#),
        ("true", "false"),
        ("https://x/", "https://y/"),
        ("optional", "forbidden"),
        (r#""k":1"#, r#""k":2"#),
        ("1.0", "1"),
        (r#""odd""#, r#""odder""#),
    ] {
        assert_ne!(digest(TOOL), digest(&TOOL.replacen(from, to, 1)), "{from}");
    }
}

#[test]
fn what_has_no_one_form_is_not_usable() {
    for tool in [
        r#"{"name":"a","x":{"k":1,"k":2}}"#,
        r#"{"name":"a","x":"\ud800"}"#,
        r#"{"name":"a","x":1e999}"#,
        &format!(r#"{{"name":"a","x":{}{}}}"#, "[".repeat(64), "]".repeat(64)),
    ] {
        let items = shown(List::Tools, &format!("[{tool},{{\"name\":\"b\"}}]"));
        assert!(items[0].item.is_err(), "{tool}");
        assert!(items[1].item.is_ok());
    }
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Into::into),
        any::<i32>().prop_map(Into::into),
        "[a-z\"\\\\\n\u{e9}]{0,6}".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..4)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// The same value, the members of its objects in the opposite order, with white space.
fn respelled(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .rev()
                .map(|(key, value)| format!("{:?} :\n{}", key, respelled(value)))
                .collect();
            format!("{{ {} }}", members.join("\t,"))
        }
        serde_json::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(respelled).collect();
            format!("[ {} ]", items.join(" , "))
        }
        other => other.to_string(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn order_and_white_space_do_not_count_and_values_do(
        members in prop::collection::btree_map("[a-m]{1,6}", value(), 0..5),
        other in value(),
        at in any::<prop::sample::Index>(),
    ) {
        let mut tool: serde_json::Map<_, _> = members.into_iter().collect();
        tool.insert("name".to_owned(), "tool".into());
        let plain = serde_json::Value::from(tool.clone());
        let one = digest(&plain.to_string());
        prop_assert_eq!(one, digest(&respelled(&plain)));
        let keys: Vec<String> = tool.keys().cloned().collect();
        let key = &keys[at.index(keys.len())];
        if key != "name" && tool[key] != other {
            tool.insert(key.clone(), other);
            prop_assert_ne!(one, digest(&serde_json::Value::from(tool.clone()).to_string()));
            tool.remove(key);
            prop_assert_ne!(one, digest(&serde_json::Value::from(tool).to_string()));
        }
    }

    #[test]
    fn paging_does_not_count(split in 0_usize..=4) {
        let all = ["a", "b", "c", "d"].map(|name| format!(r#"{{"name":"{name}"}}"#));
        let page = |items: &[String]| shown(List::Tools, &format!("[{}]", items.join(",")));
        let (one, other) = all.split_at(split);
        let paged = [page(one), page(other)].concat();
        prop_assert_eq!(paged, page(&all));
    }
}
