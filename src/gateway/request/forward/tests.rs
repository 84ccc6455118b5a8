//! What goes on to a server, and what stays.

use std::time::UNIX_EPOCH;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn forwarded(text: &'static str, id: u64) -> String {
    let message = Envelope::inbound(text.as_bytes()).expect("a valid message");
    let out = body(
        &message,
        &Bytes::from_static(text.as_bytes()),
        Relay::default(),
        None,
        id,
    );
    String::from_utf8(out.to_vec()).expect("UTF-8")
}

#[test]
fn only_the_id_changes() {
    assert_eq!(
        forwarded(
            r#"{ "id":"a\u0062", "jsonrpc":"2.0","method":"tools/call","params":{"name":"x","arguments":{"n":1.50,"big":18446744073709551615}},"x":[1 ,2]}"#,
            7
        ),
        r#"{ "id":7, "jsonrpc":"2.0","method":"tools/call","params":{"name":"x","arguments":{"n":1.50,"big":18446744073709551615}},"x":[1 ,2]}"#
    );
}

#[test]
fn what_is_not_relayed_is_not_offered() {
    assert_eq!(
        forwarded(
            r#"{"jsonrpc":"2.0","method":"tools/list","params":{"_meta":{"io.tollgate/turn":"t1","io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"k":1}},"id":1}"#,
            70
        ),
        r#"{"jsonrpc":"2.0","method":"tools/list","params":{"_meta":{"io.tollgate/turn":null,"io.modelcontextprotocol/clientCapabilities":{},"k":1}},"id":70}"#
    );
}

#[test]
fn tasks_are_withheld() {
    assert_eq!(
        forwarded(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x", "task" : {"ttl":1} , "arguments":{"task":1}}}"#,
            7
        ),
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x",  "arguments":{"task":1}}}"#
    );
    assert_eq!(
        forwarded(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x" ,"task":{}}}"#,
            7
        ),
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x" }}"#
    );
}

#[test]
fn only_protocol_headers_go_on() {
    let text = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#;
    let message = Envelope::inbound(text).expect("a valid message");
    let mut from = HeaderMap::new();
    for (name, value) in [
        ("authorization", "Bearer tg_secret"),
        ("cookie", "a=b"),
        ("mcp-session-id", "s"),
        ("tollgate-conversation", "c"),
        ("forwarded", "for=1"),
        ("x-forwarded-for", "1.1.1.1"),
        ("baggage", "k=v"),
        ("traceparent", "00-0-0-0"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "x"),
        ("mcp-param-region", "eu"),
    ] {
        from.insert(
            http::HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    assert_eq!(
        fields(&message, &from).as_bytes(),
        b"mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: x\r\n\
          mcp-param-region: eu\r\n"
    );
}

#[test]
fn mirrored_arguments_stand_once_in_plain_text() {
    let with = |values: &[&'static [u8]]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(
                "mcp-param-region",
                HeaderValue::from_bytes(value).expect("a header value"),
            );
        }
        check_params(&headers).map_err(|refusal| refusal.code)
    };
    assert_eq!(with(&[b"eu"]), Ok(()));
    assert_eq!(with(&[b"eu", b"us"]), Err(Code::HeaderDuplicate));
    assert_eq!(with(&[b"\xe9u"]), Err(Code::HeaderMismatch));
}

#[test]
fn what_connection_names_stays_here() {
    let text = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let message = Envelope::inbound(text).expect("a valid message");
    let mut from = HeaderMap::new();
    from.insert(
        CONNECTION,
        HeaderValue::from_static("keep-alive, Mcp-Param-Region"),
    );
    from.insert("mcp-param-region", HeaderValue::from_static("eu"));
    let revision = b"mcp-protocol-version: 2026-07-28\r\n";
    assert_eq!(fields(&message, &from).as_bytes(), revision);
}

/// What `params` may hold, in any order; tasks and states beside one another share a comma.
const MEMBERS: [(&str, &str); 7] = [
    ("name", r#""x""#),
    ("arguments", r#"{ "task" : 1, "requestState":"a" }"#),
    ("task", r#"{"ttl":[1 , 2]}"#),
    ("requestState", r#""tok\u0065n,""#),
    (
        "inputResponses",
        r#"{"a":{"action":"accept","content":{"task":","}}}"#,
    ),
    (
        "_meta",
        r#"{"io.tollgate/turn":"t","io.modelcontextprotocol/clientCapabilities":{"roots":{},"elicitation":{}}}"#,
    ),
    ("x", "[ ]"),
];

fn space() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "", " ", "\n\t"])
}

proptest! {
    #[test]
    fn what_goes_and_what_stays_does_not_depend_on_the_order(
        members in prop::sample::subsequence(MEMBERS.to_vec(), 0..=7).prop_shuffle(),
        spaces in proptest::collection::vec(space(), 28),
        id_last: bool,
        state in prop::option::of(prop::option::of(Just(r#""own\n\u0041""#))),
    ) {
        let written: Vec<_> = members
            .iter()
            .zip(spaces.chunks(4))
            .map(|((key, value), space)| {
                format!("{}\"{key}\"{}:{}{value}{}", space[0], space[1], space[2], space[3])
            })
            .collect();
        let params = format!(r#""params":{{{}}}"#, written.join(","));
        let (first, last) = if id_last { (params, r#""id":"a""#.into()) } else { (r#""id":"a""#.into(), params) };
        let text = format!(r#"{{"jsonrpc":"2.0",{first},"method":"tools/call",{last}}}"#);
        let message = Envelope::inbound(text.as_bytes()).expect("a valid message");
        let round = state.map(|state| {
            Round::after(None, state, UNIX_EPOCH).expect("the first")
        });
        let out = body(&message, &Bytes::from(text.clone()), Relay::default(), round.as_ref(), 7);

        let mut expected: Value = serde_json::from_str(&text).expect("JSON");
        expected["id"] = 7.into();
        let params = expected["params"].as_object_mut().expect("an object");
        params.remove("task");
        if let Some(meta) = params.get_mut("_meta") {
            *meta = json!({
                "io.tollgate/turn": null,
                "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
            });
        }
        match (params.get_mut("requestState"), state) {
            (Some(found), Some(Some(_))) => *found = "own\nA".into(),
            (Some(_), Some(None)) => drop(params.remove("requestState")),
            _ => {}
        }
        prop_assert_eq!(serde_json::from_slice::<Value>(&out).expect("JSON"), expected);
        // The server's own state comes back as it was written.
        if let Some(Some(own)) = state.filter(|_| text.contains("tok")) {
            prop_assert!(String::from_utf8_lossy(&out).contains(own));
        }
    }
}
