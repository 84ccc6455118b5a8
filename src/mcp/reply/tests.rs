use super::*;
use crate::mcp::{Envelope, Kind};

fn rejection(code: Code, id: Option<&str>) -> Rejection {
    Rejection::new(code, "what \"happened\"").with_id(id)
}

fn text(answer: (StatusCode, Bytes)) -> (u16, String) {
    (
        answer.0.as_u16(),
        String::from_utf8(answer.1.to_vec()).expect("text"),
    )
}

#[test]
fn errors_echo_the_id_and_name_the_next_step() {
    assert_eq!(
        text(refused(Era::Modern, None, &rejection(Code::MethodUnknown, Some("\"\\u0061\"")))),
        (
            404,
            r#"{"jsonrpc":"2.0","id":"\u0061","error":{"code":-32601,"message":"mcp.method_unknown: what \"happened\"; use a method that the server's capabilities name","data":{"code":"mcp.method_unknown","remedy":"use a method that the server's capabilities name"}}}"#.into()
        )
    );
    assert_eq!(
        text(refused(Era::Modern, None, &rejection(Code::ParseError, None))),
        (
            400,
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"mcp.parse_error: what \"happened\"; send one valid UTF-8 JSON object","data":{"code":"mcp.parse_error","remedy":"send one valid UTF-8 JSON object"}}}"#.into()
        )
    );
}

#[test]
fn an_unsupported_version_names_the_supported_ones() {
    let rejection = Rejection {
        requested: Some("1999-01-01".into()),
        ..rejection(Code::VersionUnsupported, Some("1"))
    };
    let (status, body) = text(refused(Era::Modern, None, &rejection));
    assert_eq!(status, 400);
    assert!(
        body.ends_with(
            r#""remedy":"use a supported protocol version","supported":["2026-07-28"],"requested":"1999-01-01"}}}"#
        ),
        "{body}"
    );
}

#[test]
fn a_modern_server_names_the_version_that_it_speaks() {
    let rejection = Rejection {
        requested: Some("2025-11-25".into()),
        ..rejection(Code::UpstreamEra, Some("1"))
    };
    let (status, body) = text(refused(Era::Legacy, Some(Method::Initialize), &rejection));
    assert_eq!(status, 400);
    assert!(
        body.ends_with(r#""supported":["2026-07-28"],"requested":"2025-11-25"}}}"#),
        "{body}"
    );
}

#[test]
fn refusals_for_a_model_are_tool_results_and_elsewhere_errors() {
    let blocked = rejection(Code::AddressBlocked, Some("3"));
    assert_eq!(
        text(refused(Era::Modern, Some(Method::ToolsCall), &blocked)),
        (
            200,
            r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"egress.address_blocked: what \"happened\"; show this to the operator"}],"isError":true,"resultType":"complete"}}"#.into()
        )
    );
    let (_, legacy) = text(refused(Era::Legacy, Some(Method::ToolsCall), &blocked));
    assert!(legacy.ends_with(r#"}],"isError":true}}"#), "{legacy}");
    let (status, list) = text(refused(Era::Legacy, Some(Method::ToolsList), &blocked));
    assert_eq!(status, 200);
    assert!(
        list.starts_with(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"#),
        "{list}"
    );
}

#[test]
fn faults_of_the_transport_are_plain() {
    assert_eq!(
        text(refused(Era::Legacy, None, &rejection(Code::ContentType, Some("1")))),
        (
            415,
            r#"{"error":{"code":"mcp.content_type","message":"what \"happened\"","remedy":"send `Content-Type: application/json`"}}"#.into()
        )
    );
}

#[test]
fn the_status_depends_on_the_era_where_the_protocols_differ() {
    for (code, modern, legacy) in [
        (Code::MethodUnknown, 404, 200),
        (Code::InvalidParams, 400, 200),
        (Code::ToolUnknown, 200, 200),
        (Code::SessionUnknown, 404, 404),
        (Code::HeaderMismatch, 400, 400),
        (Code::BodyTooLarge, 413, 413),
    ] {
        assert_eq!(status(Era::Modern, code).as_u16(), modern, "{code:?}");
        assert_eq!(status(Era::Legacy, code).as_u16(), legacy, "{code:?}");
    }
}

#[test]
fn without_an_id_the_status_alone_tells() {
    for (code, status) in [
        (Code::ConnectFailed, 502),
        (Code::RecordUnavailable, 503),
        (Code::InvalidParams, 400),
        (Code::SessionUnknown, 404),
    ] {
        let (found, _) = refused(Era::Legacy, None, &rejection(code, None));
        assert_eq!(found.as_u16(), status, "{code:?}");
    }
}

#[test]
fn own_results_are_responses() {
    assert_eq!(
        &empty(Era::Legacy, "1")[..],
        br#"{"jsonrpc":"2.0","id":1,"result":{}}"#
    );
    assert_eq!(
        &empty(Era::Modern, "\"a\"")[..],
        br#"{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete"}}"#
    );
    assert_eq!(
        &result("2", b"{\"tools\":[]}")[..],
        br#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#
    );
}

#[test]
fn every_code_becomes_a_valid_answer() {
    for code in Code::ALL {
        assert!(status(Era::Modern, *code).as_u16() >= 200);
        let (_, body) = refused(
            Era::Modern,
            Some(Method::ToolsCall),
            &rejection(*code, Some("1")),
        );
        if code.shape() != Shape::Http {
            let read = Envelope::upstream(&body).expect("a response");
            assert_eq!(
                (read.kind, read.id_text()),
                (Kind::Response, Some("1")),
                "{code:?}"
            );
        }
        if let Shape::Rpc(number) = code.shape() {
            let specified = [-32700, -32600, -32601, -32602, -32020, -32022];
            assert!(specified.contains(&number), "{code:?}");
        }
    }
}
