use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const HANDLE: &str = "0123456789abcdef0123456789abcdef";

fn terms(form: Form, max: usize) -> Terms<'static> {
    Terms {
        form,
        max,
        why: Why::Result,
        handle: Some(HANDLE),
        reader: Reader {
            tool: "tollgate__read_result",
            endpoint: None,
        },
        meta: r#""io.tollgate/untrusted":{"server":"s"}"#,
    }
}

fn cut(result: &Value, terms: &Terms<'_>) -> (Value, usize) {
    let text = result.to_string();
    let cut = trim(&text, terms);
    assert!(
        cut.text.len() <= terms.max,
        "{} of {}",
        cut.text.len(),
        terms.max
    );
    let read =
        serde_json::from_str(&cut.text).unwrap_or_else(|error| panic!("{error}: {}", cut.text));
    (read, cut.omitted)
}

fn text(said: impl Into<String>) -> Value {
    json!({ "type": "text", "text": said.into() })
}

#[test]
fn a_long_text_keeps_its_ends_and_says_what_is_missing() {
    let said = format!("begin {} end", "x".repeat(100_000));
    let (read, omitted) = cut(
        &json!({ "content": [text(said)], "resultType": "complete" }),
        &terms(Form::Tool, 8192),
    );
    let kept = read["content"][0]["text"].as_str().unwrap();
    assert!(
        kept.starts_with("begin x") && kept.ends_with("x end"),
        "{kept}"
    );
    let offset = read["_meta"]["io.tollgate/cut"]["offset"].as_u64().unwrap();
    assert!(kept.contains(&format!(
        "… [cut {omitted} bytes; go on at offset {offset}] …"
    )));
    assert!(kept.len() > 6000, "{}", kept.len());
    assert_eq!(read["content"].as_array().unwrap().len(), 2);
    assert_eq!(
        read["content"][1]["text"],
        format!(
            "[Incomplete: {omitted} of 100073 bytes are left out; to read on, call `tollgate__read_result` within 10 minutes \
             with handle {HANDLE} and offset {offset}. Answer from what there is, and do not invent the rest.]"
        )
    );
    assert_eq!(
        read["_meta"],
        json!({
            "io.tollgate/untrusted": { "server": "s" },
            "io.tollgate/cut": {
                "bytes": 100_073, "kept": 100_073 - omitted, "why": "result",
                "handle": HANDLE, "offset": offset, "tool": "tollgate__read_result"
            }
        })
    );
    assert_eq!(
        (&read["resultType"], &read["isError"]),
        (&json!("complete"), &Value::Null)
    );
}

#[test]
fn structure_is_whole_or_goes_and_the_result_passes_as_an_error() {
    let small = json!({ "k": "v" });
    let (read, _) = cut(
        &json!({ "content": [text("x".repeat(9000))], "structuredContent": small }),
        &terms(Form::Tool, 4096),
    );
    assert_eq!(
        (&read["structuredContent"], &read["isError"]),
        (&small, &Value::Null)
    );

    let large = json!({ "k": "\"quoted\"\n".repeat(2000) });
    let twin = large.to_string();
    let result = json!({ "content": [text(twin)], "structuredContent": large, "isError": false });
    let (read, _) = cut(&result, &terms(Form::Tool, 4096));
    assert_eq!(
        (&read["structuredContent"], &read["isError"]),
        (&Value::Null, &json!(true))
    );
    let sentence = read["content"][1]["text"].as_str().unwrap();
    assert!(sentence.ends_with(
        "The tool reported no error: `isError` only says that its structured content is left out.]"
    ));

    let result = json!({ "content": [], "structuredContent": large });
    let (read, _) = cut(&result, &terms(Form::Tool, 4096));
    let shown = read["content"][0]["text"].as_str().unwrap();
    assert!(
        shown.starts_with(r#"{"k":"\"quoted\"\n\"quoted\""#) && shown.ends_with("\"}"),
        "{shown}"
    );
    assert_eq!(read["isError"], true);
}

#[test]
fn base64_is_whole_or_stood_for() {
    let image = |bytes: usize| json!({ "type": "image", "mimeType": "image/png", "data": "A".repeat(bytes) });
    let (read, _) = cut(
        &json!({ "content": [image(600), image(90_000), text("x".repeat(9000))] }),
        &terms(Form::Tool, 8192),
    );
    assert_eq!(read["content"][0], image(600));
    assert_eq!(
        read["content"][1],
        text("[left out: image image/png, 90049 bytes]")
    );
    let blob = json!({ "type": "resource", "resource": { "uri": "file:///a", "mimeType": "a/b", "blob": "A".repeat(9000) } });
    let (read, _) = cut(&json!({ "content": [blob] }), &terms(Form::Tool, 4096));
    let said = read["content"][0]["text"].as_str().unwrap();
    assert!(
        said.starts_with("[left out: resource a/b file:///a, 90"),
        "{said}"
    );
    let contents =
        json!({ "contents": [{ "uri": "file:///a", "blob": "A".repeat(9000) }], "ttlMs": 5 });
    let (read, _) = cut(&contents, &terms(Form::Resource, 4096));
    assert_eq!(read["contents"][0]["uri"], "file:///a");
    assert_eq!(read["ttlMs"], Value::Null);
}

#[test]
fn of_many_blocks_the_first_and_last_stay() {
    let blocks: Vec<Value> = (0..20_000).map(|n| text(format!("block {n}"))).collect();
    let (read, _) = cut(&json!({ "content": blocks }), &terms(Form::Tool, 8192));
    let kept = read["content"].as_array().unwrap();
    assert_eq!(kept[0], text("block 0"));
    assert_eq!(kept[kept.len() - 2], text("block 19999"));
    let between = kept
        .iter()
        .find(|block| block["text"].as_str().unwrap().contains("blocks left out"));
    let left = 20_000 - (kept.len() - 2);
    let said = between.unwrap()["text"].as_str().unwrap();
    assert!(
        said.starts_with(&format!("… [{left} blocks left out; go on at offset ")),
        "{said}"
    );
    assert!(kept.len() > 100, "{}", kept.len());
}

#[test]
fn messages_and_resources_say_it_in_their_texts() {
    let (read, omitted) = cut(
        &json!({ "messages": [{ "role": "user", "content": text("x".repeat(9000)) }] }),
        &terms(Form::Prompt, 4096),
    );
    let said = read["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(said.contains(&format!(
        "… [cut {omitted} bytes: incomplete; do not invent the rest; to read on, call "
    )));
    assert_eq!(read["messages"].as_array().unwrap().len(), 1);
    let (read, omitted) = cut(
        &json!({ "contents": [{ "uri": "a:b", "text": "x".repeat(9000) }] }),
        &Terms {
            handle: None,
            ..terms(Form::Resource, 4096)
        },
    );
    let said = read["contents"][0]["text"].as_str().unwrap();
    assert!(said.contains(&format!(
        "… [cut {omitted} bytes: incomplete; do not invent the rest; the rest was not kept: ask for less at once] …"
    )));
}

#[test]
fn of_a_turn_that_is_spent_nothing_stays() {
    for (form, result) in [
        (
            Form::Tool,
            json!({ "content": [text("x")], "structuredContent": {} }),
        ),
        (
            Form::Resource,
            json!({ "contents": [{ "uri": "a:b", "text": "x" }] }),
        ),
        (
            Form::Prompt,
            json!({ "messages": [{ "role": "user", "content": text("x") }] }),
        ),
    ] {
        let (read, _) = cut(
            &result,
            &Terms {
                why: Why::Turn,
                ..terms(form, 65_536)
            },
        );
        let said = read.to_string();
        assert_eq!(read[form.list()].as_array().unwrap().len(), 1);
        assert!(
            said.contains("[budget.turn_spent: the results of this turn"),
            "{said}"
        );
        assert!(said.contains("do not invent the rest"), "{said}");
        assert!(said.len() < 1024, "{}", said.len());
        assert_eq!(
            read["isError"],
            if form == Form::Tool {
                json!(true)
            } else {
                Value::Null
            }
        );
    }
}

#[test]
fn what_is_no_such_result_is_left_out_whole() {
    for result in [
        json!(["x".repeat(9000)]),
        json!("x".repeat(9000)),
        json!({ "x": "y".repeat(9000) }),
    ] {
        let (read, _) = cut(&result, &terms(Form::Tool, 2048));
        assert_eq!(read["content"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn blocks_that_are_no_list_are_left_out() {
    let large = "x".repeat(9000);
    for (form, result) in [
        (Form::Tool, json!({ "content": false, "large": large })),
        (Form::Resource, json!({ "contents": "c", "large": large })),
        (Form::Prompt, json!({ "messages": {}, "large": large })),
    ] {
        let cut = trim(&result.to_string(), &terms(form, 2048));
        let list = format!("\"{}\":", form.list());
        assert_eq!(cut.text.matches(&list).count(), 1, "{}", cut.text);
    }
}

fn block() -> impl Strategy<Value = Value> {
    let said = prop_oneof![r#"[a\\"é😀\n]{0,20}"#, r#"[a\\"é😀\n]{0,900}"#];
    (0..7, said).prop_map(|(kind, said)| match kind {
        0 | 1 => text(said),
        2 => json!({ "type": "image", "mimeType": "i/p", "data": "A".repeat(said.len()) }),
        3 => json!({ "type": "resource", "resource": { "uri": "a:b", "text": said } }),
        4 => json!({ "type": "resource_link", "uri": said, "name": "n" }),
        5 => json!({ "type": "unknown", "x": said }),
        _ => json!(said),
    })
}

proptest! {
    #[test]
    fn whatever_is_cut_is_a_result_and_fits(
        blocks in proptest::collection::vec(block(), 0..60),
        structured in proptest::option::of(block()),
        is_error: Option<bool>,
        other in "[a\"]{0,200}",
        max in 1024usize..9000,
        kept: bool,
        which in 0..3usize,
    ) {
        let form = [Form::Tool, Form::Resource, Form::Prompt][which];
        let mut result = json!({ form.list(): blocks, "other": other, "_meta": { "a/b": other } });
        if let Some(structured) = structured {
            result["structuredContent"] = structured;
        }
        if let Some(is_error) = is_error {
            result["isError"] = is_error.into();
        }
        let given = Terms { handle: Some(HANDLE).filter(|_| kept), ..terms(form, max) };
        let written = result.to_string();
        let cut = trim(&written, &given);
        prop_assert!(cut.text.len() <= max, "{} of {}: {}", cut.text.len(), max, cut.text);
        prop_assert!(cut.omitted <= written.len());
        let read: Value = serde_json::from_str(&cut.text).expect("JSON");
        prop_assert!(read[form.list()].is_array());
        if is_error == Some(true) && form == Form::Tool {
            prop_assert_eq!(&read["isError"], &json!(true));
        }
        if form == Form::Tool && read["isError"] != json!(true) {
            prop_assert_eq!(&read["structuredContent"], &result["structuredContent"]);
        }
    }
}
