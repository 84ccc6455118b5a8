use proptest::prelude::*;

use super::*;

const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get_time","arguments":{"zone":"UTC"},
 "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x"},
 "io.modelcontextprotocol/clientCapabilities":{},"progressToken":"p1","io.tollgate/turn":"t-1"}},"extra":[1]}"#;

fn text(part: Option<Part<'_>>) -> Option<&str> {
    part.map(|part| part.as_str())
}

#[test]
fn a_request_shows_its_parts_and_keeps_its_bytes() {
    let call = Envelope::inbound(CALL.as_bytes()).expect("a request");
    assert_eq!(
        (call.kind, call.id_text(), &*call.method),
        (Kind::Request, Some("7"), "tools/call")
    );
    let params = call.params.as_ref().expect("params");
    assert_eq!(text(params.name), Some("\"get_time\""));
    assert_eq!(
        params.name.and_then(|name| name.string()).as_deref(),
        Some("get_time")
    );
    assert_eq!(text(params.arguments), Some("{\"zone\":\"UTC\"}"));
    assert!(
        params.whole.as_str().starts_with("{\"name\"")
            && params.whole.as_str().ends_with("\"t-1\"}}")
    );
    assert_eq!(&CALL[params.whole.range()], params.whole.as_str());
    let meta = call.meta().expect("meta");
    assert_eq!(text(meta.protocol_version), Some("\"2026-07-28\""));
    assert_eq!(text(meta.client_info), Some("{\"name\":\"x\"}"));
    assert_eq!(text(meta.client_capabilities), Some("{}"));
    assert_eq!(text(meta.progress_token), Some("\"p1\""));
    assert_eq!(text(meta.own("turn")), Some("\"t-1\""));
    assert_eq!(meta.own("conversation"), None);
}

#[test]
fn messages_are_told_apart() {
    for (message, kind, id) in [
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
            Kind::Request,
            Some("\"a\""),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}"#,
            Kind::Notification,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":-3,"result":{}}"#,
            Kind::Response,
            Some("-3"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":18446744073709551615,"error":{"code":-32601,"message":""}}"#,
            Kind::Response,
            Some("18446744073709551615"),
        ),
        (
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":""}}"#,
            Kind::Response,
            None,
        ),
    ] {
        let envelope = Envelope::inbound(message.as_bytes()).expect(message);
        assert_eq!((envelope.kind, envelope.id_text()), (kind, id), "{message}");
    }
}

#[test]
fn odd_messages_are_refused_with_the_id_where_it_can_be_read() {
    use Code::{Ambiguous, Batch, InvalidParams, InvalidRequest, ParseError};
    let deep = format!(
        r#"{{"jsonrpc":"2.0","method":"x","params":{{"a":{}1{}}},"id":9}}"#,
        "[".repeat(63),
        "]".repeat(63)
    );
    for (message, code, id) in [
        ("", ParseError, None),
        ("{\"id\":1,", ParseError, None),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#,
            ParseError,
            None,
        ),
        ("[]", Batch, None),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Batch, None),
        ("17", InvalidRequest, None),
        ("tru", ParseError, None),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            InvalidRequest,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            InvalidRequest,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1e2,"method":"ping"}"#,
            InvalidRequest,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
            InvalidRequest,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            InvalidRequest,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
            InvalidRequest,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":18446744073709551616,"method":"ping"}"#,
            Ambiguous,
            Some("18446744073709551616"),
        ),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            InvalidRequest,
            Some("1"),
        ),
        (r#"{"id":1,"method":"ping"}"#, InvalidRequest, Some("1")),
        (r#"{"jsonrpc":"2.0","id":1}"#, InvalidRequest, Some("1")),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            InvalidRequest,
            Some("1"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#,
            InvalidRequest,
            Some("1"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            InvalidRequest,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"params":{}}"#,
            InvalidRequest,
            None,
        ),
        (r#"{"jsonrpc":"2.0","result":{}}"#, InvalidRequest, None),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{}}"#,
            InvalidRequest,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#,
            InvalidParams,
            Some("1"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":null}"#,
            InvalidParams,
            Some("1"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":[]}}"#,
            InvalidParams,
            Some("1"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#,
            Ambiguous,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","\u006dethod":"y"}"#,
            Ambiguous,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"x","params":{"a":{"b":1,"b":2}},"id":"z"}"#,
            Ambiguous,
            Some("\"z\""),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\udc00"}}"#,
            Ambiguous,
            Some("1"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1e999}}"#,
            Ambiguous,
            Some("1"),
        ),
        (&deep, Ambiguous, Some("9")),
    ] {
        let rejection = Envelope::inbound(message.as_bytes()).expect_err(message);
        assert_eq!(
            (rejection.refusal.code, rejection.id.as_deref()),
            (code, id),
            "{message}"
        );
    }
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":"{}","method":"x"}}"#,
        "a".repeat(1023)
    );
    assert_eq!(
        Envelope::inbound(long.as_bytes())
            .expect_err("a long id")
            .refusal
            .code,
        InvalidRequest
    );
}

#[test]
fn a_servers_message_may_hold_what_parsers_disagree_about_but_not_in_its_envelope() {
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2,"b":"\ud800","c":1e999,"d":99999999999999999999}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2}}"#,
    ] {
        Envelope::upstream(message.as_bytes()).expect(message);
    }
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{},"params":[]}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        "[]",
        "<html>",
    ] {
        let refusal = Envelope::upstream(message.as_bytes()).expect_err(message);
        assert_eq!(refusal.code, Code::UpstreamMalformed, "{message}");
    }
}

#[test]
fn results_and_errors_tell_what_a_record_needs() {
    let read = |message: &'static str| Envelope::upstream(message.as_bytes()).expect(message);
    let result = read(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true,"resultType":"complete"}}"#)
        .result
        .expect("a result");
    assert!(result.is_error);
    assert_eq!(text(result.result_type), Some("\"complete\""));
    assert!(
        !read(r#"{"jsonrpc":"2.0","id":1,"result":7}"#)
            .result
            .expect("a result")
            .is_error
    );
    let error = read(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"m"}}"#)
        .error
        .expect("an error");
    assert_eq!(
        (error.code, error.whole.as_str()),
        (Some(-32022), r#"{"code":-32022,"message":"m"}"#)
    );
}

#[test]
fn ids_are_equal_however_they_are_escaped() {
    let key = |message: &'static str| {
        Envelope::inbound(message.as_bytes())
            .expect(message)
            .id
            .expect("an id")
            .key()
            .into_owned()
    };
    assert_eq!(
        key(r#"{"jsonrpc":"2.0","id":"\u0061","method":"x"}"#),
        key(r#"{"jsonrpc":"2.0","id":"a","method":"x"}"#)
    );
    assert_ne!(
        key(r#"{"jsonrpc":"2.0","id":"1","method":"x"}"#),
        key(r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#)
    );
}

#[test]
fn parts_are_replaced_and_nothing_else() {
    let body =
        br#"{"id": 1 ,"jsonrpc":"2.0","method":"x","params":{"_meta":{"progressToken":"p"}}}"#;
    let message = Envelope::inbound(body).expect("a request");
    let id = message.id.expect("an id").part().range();
    let meta = message.meta().expect("meta");
    let token = meta.progress_token.expect("a token").range();
    let edited = splice(body, &[(id, b"\"t-9\""), (token, b"3")]);
    assert_eq!(
        edited,
        br#"{"id": "t-9" ,"jsonrpc":"2.0","method":"x","params":{"_meta":{"progressToken":3}}}"#
    );
    assert_eq!(splice(body, &[]), body);
}

proptest! {
    #[test]
    fn members_may_stand_in_any_order(order in Just(vec![0, 1, 2, 3]).prop_shuffle()) {
        let members = [r#""jsonrpc":"2.0""#, r#""id":"i""#, r#""method":"m""#, r#""params":{"uri":"u"}"#];
        let text = format!("{{{}}}", order.iter().map(|n| members[*n]).collect::<Vec<_>>().join(" , "));
        let message = Envelope::inbound(text.as_bytes()).expect("a request");
        prop_assert_eq!(message.id_text(), Some("\"i\""));
        prop_assert_eq!(&*message.method, "m");
        prop_assert_eq!(message.params.and_then(|params| params.uri).map(|uri| uri.as_str()), Some("\"u\""));
    }

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = Envelope::inbound(&bytes).map_err(|rejection| rejection.refusal.text());
        let _ = Envelope::upstream(&bytes).map_err(|refusal| refusal.text());
    }
}

#[test]
fn members_that_only_some_parsers_see_are_refused() {
    let in_message = |key: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","{key}":"tools/call","params":{{}}}}"#)
    };
    let in_params = |key: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","{key}":"b"}}}}"#
        )
    };
    let in_meta = |key: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{{"{key}":{{}}}}}}}}"#
        )
    };
    for message in [
        in_message("Method"),
        in_message("METHOD"),
        in_message("PARAMS"),
        in_message("Id"),
        in_message("re\\u017fult"),
        in_message("method\\u0000"),
        in_params("Name"),
        in_params("n\\u0041me"),
        in_params("\\u0000name"),
        in_params("argument\u{17f}"),
        in_params("_Meta"),
        in_params("progressTo\\u212aen"),
        in_meta("io.modelcontextprotocol/ClientCapabilities"),
        in_meta("IO.modelcontextprotocol/protocolVersion"),
    ] {
        let rejection = Envelope::inbound(message.as_bytes()).expect_err(&message);
        assert_eq!(rejection.refusal.code, Code::Ambiguous, "{message}");
        assert_eq!(rejection.id.as_deref(), Some("1"), "{message}");
    }
    for message in [
        in_message("methods"),
        in_params("argument"),
        in_params("meta"),
        in_params("Arguments2"),
        in_meta("Name"),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"a":1,"A":2,"Name":3}}}"#
            .to_owned(),
    ] {
        assert!(Envelope::inbound(message.as_bytes()).is_ok(), "{message}");
    }
    // A server's message is plain as far as it decides what is judged; what its parts hold is the client's to read.
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{},"Result":{}}"#;
    assert!(Envelope::upstream(answer.as_bytes()).is_err());
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"id":1,"Id":2}}"#;
    assert!(Envelope::upstream(answer.as_bytes()).is_ok());
}
