use serde_json::value::RawValue;

use super::*;
use crate::app::control::pins::{Definition, PinsFile};

fn row(kind: &str, name: &str, state: State) -> Row {
    Row {
        kind: kind.to_owned(),
        name: name.to_owned(),
        state,
        version: (state != State::New).then_some(2),
        read_only_hint: false,
        read_only: false,
        suspicions: Vec::new(),
        pinned: None,
        seen: None,
    }
}

fn definition(sha256: &str, text: &str) -> Option<Definition> {
    Some(Definition {
        sha256: sha256.repeat(64),
        definition: RawValue::from_string(text.to_owned()).expect("JSON"),
    })
}

fn pins(items: Vec<Row>) -> Pins {
    Pins {
        server: "notes".to_owned(),
        pin: "first-use".to_owned(),
        version: 3,
        reviewed: false,
        items,
        unasked: false,
        unread: None,
    }
}

fn example() -> Pins {
    pins(vec![
        Row {
            read_only_hint: true,
            ..row("tool", "get", State::Pinned)
        },
        Row {
            read_only_hint: true,
            read_only: true,
            ..row("tool", "list*", State::Absent)
        },
        Row {
            suspicions: vec!["it tells the model: `<important>`".to_owned()],
            pinned: definition("a", r#"{"description":"Puts.","name":"put"}"#),
            seen: definition(
                "b",
                "{\"description\":\"Puts it all.\u{200b}\",\"name\":\"put\"}",
            ),
            ..row("tool", "put", State::Drifted)
        },
        Row {
            seen: definition("c", r#"{"name":"x"}"#),
            ..row("tool", "\u{1b}[31mx", State::New)
        },
        row("instructions", "", State::Pinned),
    ])
}

#[test]
fn the_table_says_how_each_item_stands_and_what_comes_next() {
    assert_eq!(
        table(&example(), Styles::plain()),
        "\
notes: pins in the store, version 3, by first use, 5 items
kind          name         state     read-only  version
tool          get          pinned    hint       2
tool          list*        absent    accepted   2
tool          put          drifted   -          2
              ! it tells the model: `<important>`
tool          \\u001b[31mx  new       -          -
instructions  -            pinned    -          2

2 of 5 differ and are not offered; look at them with `tollgate pin notes --diff`, and accept with `tollgate pin notes \
--accept NAME` or `--accept-all`

1 tool claims to read only, and still counts as a side effect; to accept what it says, write into servers/notes.toml
  read_only = \"hints\"
or only for those of now
  read_only = [\"get\"]
"
    );
}

#[test]
fn nothing_is_said_of_what_needs_nothing() {
    let all_well = pins(vec![row("tool", "get", State::Pinned)]);
    assert_eq!(
        table(&all_well, Styles::plain()),
        "notes: pins in the store, version 3, by first use, 1 item\nkind  name  state     read-only  version\n\
         tool  get   pinned    -          2\n"
    );
    assert_eq!(
        differences(&all_well, Styles::plain()),
        "notes: nothing differs from what is pinned\n"
    );
    let empty = Pins {
        pin: "file".to_owned(),
        version: 0,
        ..pins(Vec::new())
    };
    assert_eq!(
        table(&empty, Styles::plain()),
        "notes: pins/notes.json is not written yet, 0 items\n"
    );
}

#[test]
fn differences_are_shown_definition_by_definition() {
    assert_eq!(
        differences(&example(), Styles::plain()),
        "\
tool `put`: drifted, pinned at version 2
! it tells the model: `<important>`
--- pinned aaaaaaaaaaaaaaaa
+++ seen   bbbbbbbbbbbbbbbb
@@ -1,4 +1,4 @@
 {
-  \"description\": \"Puts.\",
+  \"description\": \"Puts it all.\\u200b\",
   \"name\": \"put\"
 }

tool `\\u001b[31mx`: new
+++ seen   cccccccccccccccc
+{
+  \"name\": \"x\"
+}

notes: 2 items differ from what is pinned; accept with `tollgate pin notes --accept NAME`, with `--accept NAME@DIGEST` only what is seen here, or with `--accept-all`
"
    );
    let coloured = differences(&example(), Styles::coloured());
    assert!(coloured.contains("\u{1b}[7m"), "{coloured}");
    assert!(!coloured.contains("\u{1b}[31mx"), "{coloured}");
}

#[test]
fn what_was_accepted_is_named_with_its_digest() {
    let mut done = Accepted {
        version: 4,
        items: vec![AcceptedItem {
            kind: "tool".to_owned(),
            name: "put".to_owned(),
            sha256: "b".repeat(64),
        }],
        file: None,
    };
    assert_eq!(
        accepted("notes", &done, None),
        "accepted tool `put` bbbbbbbbbbbbbbbb\nnotes: pins version 4, in force\n"
    );
    done.items.clear();
    done.file = Some(PinsFile {
        folder: "/etc/tollgate".into(),
        text: String::new(),
    });
    assert_eq!(
        accepted("notes", &done, Some("/etc/tollgate/pins/notes.json")),
        "notes: nothing was new; pins version 4, /etc/tollgate/pins/notes.json is written and in force\n"
    );
}
