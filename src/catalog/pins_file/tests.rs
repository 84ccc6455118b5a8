use proptest::prelude::*;

use super::*;

fn item(kind: ItemKind, name: &str, definition: &str, version: u64) -> Item {
    Item::new(kind, name.into(), definition, version, By::Operator).expect("a definition")
}

fn pinned(version: u64, mut items: Vec<Item>) -> Pinned {
    items.sort_by(|one, other| one.key().cmp(&other.key()));
    Pinned {
        version,
        reviewed: true,
        views: Vec::new(),
        items,
    }
}

fn example() -> Pinned {
    pinned(
        3,
        vec![
            item(
                ItemKind::Instructions,
                "",
                "\"be\u{200b} brief, and say \\\"hello\\\"\"",
                1,
            ),
            item(
                ItemKind::Tool,
                "get",
                r#"{"name":"get","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#,
                3,
            ),
        ],
    )
}

const EXAMPLE: &str = r#"{
  "server": "notes",
  "version": 3,
  "items": [
    {
      "kind": "tool",
      "name": "get",
      "sha256": "9766b8800263f280acd014ecc32742ddc6d44b5d928471b59c9b1afd6d0a05ac",
      "version": 3,
      "definition": {
        "annotations": {
          "readOnlyHint": true
        },
        "inputSchema": {
          "type": "object"
        },
        "name": "get"
      }
    },
    {
      "kind": "instructions",
      "name": "",
      "sha256": "8c318b82b8b2c3b3a25c98a732e6d0f7076d45fc294eaf987bb7dc5d7b0255e9",
      "version": 1,
      "definition": "be\u200b brief, and say \"hello\""
    }
  ]
}
"#;

#[test]
fn the_file_is_written_for_people_and_read_again() {
    let text = write("notes", &example());
    assert_eq!(text, EXAMPLE);
    assert_eq!(read("pins/notes.json", "notes", EXAMPLE), Ok(example()));
    let empty = write("notes", &Pinned::default());
    assert_eq!(
        empty,
        "{\n  \"server\": \"notes\",\n  \"version\": 0,\n  \"items\": []\n}\n"
    );
    assert_eq!(read("x", "notes", &empty), Ok(pinned(0, Vec::new())));
}

fn said(text: &str) -> String {
    let faults = read("pins/notes.json", "notes", text).expect_err("a fault");
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n").replace(&format!("; {REMEDY}"), "")
}

#[test]
fn what_was_changed_by_hand_is_told_with_its_place() {
    for (from, to, expected) in [
        (
            "true",
            "false",
            "pins/notes.json:10:21: items[0].definition: its digest is \
             269a49ff128026fbd76196ac6bbaa0eb34f87422be04edb0efd34186d3bb9490, and `sha256` says \
             `9766b8800263f280acd014ecc32742ddc6d44b5d928471b59c9b1afd6d0a05ac`: one of them was changed by hand",
        ),
        (
            "\"server\": \"notes\"",
            "\"server\": \"other\"",
            "pins/notes.json:1:1: server: found `other`, expected `notes`, as the file is named",
        ),
        (
            "\"kind\": \"tool\"",
            "\"kind\": \"resource\"",
            "pins/notes.json:5:5: items[0].kind: found `resource`, expected one of `tool`, `prompt`, `template`, `instructions`",
        ),
        (
            "\"kind\": \"tool\"",
            "\"kind\": \"template\"",
            "pins/notes.json:10:21: items[0].definition: it defines something else than the template `get`",
        ),
        (
            "\"version\": 3,\n      \"definition\"",
            "\"version\": 4,\n      \"definition\"",
            "pins/notes.json:5:5: items[0].version: found 4, expected at most 3, the version of the file",
        ),
        (
            "\"version\": 1,\n",
            "\"version\": 1,\n      \"by\": \"me\",\n",
            "pins/notes.json:25:10: items[1]: unknown field `by`, expected one of `kind`, `name`, `sha256`, `version`, `definition`",
        ),
        (
            "\"version\": 3,\n  ",
            "\"version\": 3,\n  \"version\": 3,\n  ",
            "pins/notes.json:4:11: duplicate field `version`",
        ),
        (
            "\"readOnlyHint\": true",
            "\"readOnlyHint\": true, \"readOnlyHint\": true",
            "pins/notes.json:10:21: items[0].definition: the key before byte 73 stands twice in its object",
        ),
        (
            "  ]\n}",
            "  ]\n",
            "pins/notes.json:29:1: EOF while parsing an object",
        ),
    ] {
        assert!(EXAMPLE.contains(from), "{from}");
        assert_eq!(said(&EXAMPLE.replacen(from, to, 1)), expected);
    }
}

#[test]
fn nothing_stands_there_twice_and_variants_are_bounded() {
    let one = &example().items[0];
    let twice = pinned(3, vec![one.clone(), one.clone()]);
    assert!(
        said(&write("notes", &twice))
            .ends_with("items[1]: `get` stands in the file twice; keep one")
    );
    let variant = |n: usize| {
        item(
            ItemKind::Tool,
            "get",
            &format!(r#"{{"name":"get","title":"{n}"}}"#),
            1,
        )
    };
    let eight = pinned(1, (0..8).map(variant).collect());
    assert_eq!(read("x", "notes", &write("notes", &eight)), Ok(eight));
    let nine = pinned(1, (0..9).map(variant).collect());
    assert!(said(&write("notes", &nine)).contains("items[8]: `get` has more than 8 definitions"));
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        tools in proptest::collection::btree_map("[ -~é中\u{200b}\u{202e}]{1,12}", "\\PC{0,40}", 0..12),
        version in 1_u64..9,
    ) {
        let items = tools.iter().map(|(name, text)| {
            let definition = serde_json::json!({"name": name, "description": text, "inputSchema": {}});
            item(ItemKind::Tool, name, &definition.to_string(), version)
        });
        let pinned = pinned(version, items.collect());
        let text = write("s", &pinned);
        prop_assert_eq!(read("f", "s", &text), Ok(pinned));
        prop_assert_eq!(write("s", &read("f", "s", &text).expect("read")), text);
    }

    #[test]
    fn any_text_is_an_answer(text in "\\PC*", cut in 0_usize..EXAMPLE.len(), byte in "[ -~]") {
        drop(read("f", "s", &text));
        let mut changed = EXAMPLE.to_owned();
        changed.replace_range(cut..=cut, &byte);
        drop(read("f", "notes", &changed));
    }
}
