use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::mcp::{Envelope, Era, methods::Method};

fn map(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).expect("a header"),
            )
        })
        .fold(HeaderMap::new(), |mut map, (name, value)| {
            map.append(name, value);
            map
        })
}

#[test]
fn headers_are_read_once_each_and_trimmed() {
    let headers = map(&[
        ("mcp-method", "\t tools/call "),
        ("mcp-session-id", "s"),
        ("content-type", "application/json"),
    ]);
    assert_eq!(
        ProtocolHeaders::read(&headers),
        Ok(ProtocolHeaders {
            method: Some("tools/call"),
            session_id: Some("s"),
            content_type: Some("application/json"),
            ..ProtocolHeaders::default()
        })
    );
    for name in [
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "mcp-session-id",
        "last-event-id",
        "content-type",
    ] {
        let twice = map(&[(name, "a"), (name, "a")]);
        assert_eq!(
            ProtocolHeaders::read(&twice).expect_err(name).code,
            Code::HeaderDuplicate
        );
    }
    let mut odd = HeaderMap::new();
    odd.insert(
        NAME,
        HeaderValue::from_bytes(b"caf\xc3\xa9").expect("opaque"),
    );
    assert_eq!(
        ProtocolHeaders::read(&odd).expect_err("not ASCII").code,
        Code::HeaderMismatch
    );
}

#[test]
fn media_types_are_compared_as_http_has_it() {
    for (value, json) in [
        ("application/json", true),
        ("Application/JSON; charset=\"UTF-8\"", true),
        ("application/json;charset=utf-16", false),
        ("application/json-rpc", false),
        ("text/plain; application/json", false),
        ("", false),
    ] {
        assert_eq!(is_json(value), json, "{value}");
    }
    assert!(is_stream("text/event-stream;charset=utf-8"));
    assert!(!is_stream("text/event-streams"));
    for (values, both) in [
        (&["application/json, text/event-stream"][..], true),
        (&["application/json;q=0.9", "TEXT/Event-Stream"], true),
        (&["*/*"], true),
        (&["application/*, text/*;q=0.1"], true),
        (&["application/json"], false),
        (&["text/event-stream"], false),
        (&["*/*, text/event-stream;q=0"], false),
        (&["application/json-seq, text/event-stream"], false),
        (&[], false),
    ] {
        let pairs: Vec<_> = values.iter().map(|value| ("accept", *value)).collect();
        assert_eq!(accepts_answers(&map(&pairs)), both, "{values:?}");
    }
    assert!(accepts_stream(&map(&[("accept", "text/event-stream")])));
}

#[test]
fn names_that_a_header_cannot_carry_go_in_base64() {
    for (value, header) in [
        ("get_time", "get_time"),
        ("", ""),
        ("a b", "a b"),
        (" a", "=?base64?IGE=?="),
        ("caf\u{e9}", "=?base64?Y2Fmw6k=?="),
        ("a\nb", "=?base64?YQpi?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ("=?BASE64?YQ==?=", "=?BASE64?YQ==?="),
    ] {
        assert_eq!(encode(value), header, "{value:?}");
        assert_eq!(decode(header).as_deref(), Some(value), "{header}");
    }
    assert_eq!(decode("=?base64?Y?="), None);
    assert_eq!(decode("=?base64?/w==?="), None);
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Checks a body under headers: the era, then the method or the code.
fn judge(pairs: &[(&'static str, &str)], body: &str) -> (Era, Result<Option<Method>, Code>) {
    let map = map(pairs);
    let headers = ProtocolHeaders::read(&map).expect("headers");
    let message = Envelope::inbound(body.as_bytes()).expect(body);
    let era = era(&headers, &message);
    let checked = match era {
        Era::Modern => check_modern(&headers, &message),
        Era::Legacy => check_legacy(&headers, &message),
    };
    if let Err(rejection) = &checked {
        assert_eq!(rejection.id.as_deref(), message.asked_id(), "{body}");
    }
    (era, checked.map_err(|rejection| rejection.refusal.code))
}

fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#)
}

#[test]
fn modern_requests_are_checked_in_the_order_of_the_specification() {
    let version = ("mcp-protocol-version", "2026-07-28");
    let list = ("mcp-method", "tools/list");
    let call = ("mcp-method", "tools/call");
    let named = format!(r#""name":"caf\u00e9",{META}"#);
    let old = META.replace("2026-07-28", "2019-01-01");
    let bare = META.replace(r#","io.modelcontextprotocol/clientCapabilities":{}"#, "");
    for (headers, body, expected) in [
        (
            &[version, list][..],
            request("tools/list", META),
            Ok(Some(Method::ToolsList)),
        ),
        (
            &[version, call, ("mcp-name", "=?base64?Y2Fmw6k=?=")],
            request("tools/call", &named),
            Ok(Some(Method::ToolsCall)),
        ),
        (
            &[version, list],
            request("tools/list", ""),
            Err(Code::MetaMissing),
        ),
        (
            &[version],
            request("tools/list", &bare),
            Err(Code::MetaMissing),
        ),
        (
            &[list],
            request("tools/list", META),
            Err(Code::HeaderMismatch),
        ),
        (
            &[version],
            request("tools/list", META),
            Err(Code::HeaderMismatch),
        ),
        (
            &[version, call],
            request("tools/list", META),
            Err(Code::HeaderMismatch),
        ),
        (
            &[version, ("mcp-method", "Tools/List")],
            request("tools/list", META),
            Err(Code::HeaderMismatch),
        ),
        (
            &[version, call],
            request("tools/call", &named),
            Err(Code::HeaderMismatch),
        ),
        (
            &[version, call, ("mcp-name", "cafe")],
            request("tools/call", &named),
            Err(Code::HeaderMismatch),
        ),
        (
            &[version, call, ("mcp-name", "=?base64?!?=")],
            request("tools/call", &named),
            Err(Code::HeaderMismatch),
        ),
        (
            &[version, list],
            request("tools/list", &old),
            Err(Code::HeaderMismatch),
        ),
        (
            &[("mcp-protocol-version", "2019-01-01"), list],
            request("tools/list", &old),
            Err(Code::VersionUnsupported),
        ),
        (
            &[version, ("mcp-method", "initialize")],
            request("initialize", META),
            Err(Code::MethodUnknown),
        ),
        (
            &[version, ("mcp-method", "ping")],
            request("ping", META),
            Err(Code::MethodUnknown),
        ),
        (
            &[version, ("mcp-method", "initialize")],
            request("initialize", ""),
            Err(Code::MetaMissing),
        ),
        (
            &[("mcp-protocol-version", "2031-01-01"), list],
            request("tools/list", ""),
            Err(Code::MetaMissing),
        ),
        (
            &[version],
            r#"{"jsonrpc":"2.0","method":"notifications/x"}"#.into(),
            Ok(None),
        ),
        (
            &[version],
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.into(),
            Err(Code::InvalidRequest),
        ),
    ] {
        assert_eq!(
            judge(headers, &body),
            (Era::Modern, expected),
            "{headers:?} {body}"
        );
    }
}

#[test]
fn legacy_messages_are_those_without_modern_metadata() {
    let session = ("mcp-session-id", "s");
    let version = ("mcp-protocol-version", "2025-11-25");
    for (headers, body, expected) in [
        (
            &[][..],
            request("initialize", r#""protocolVersion":"2025-06-18""#),
            Ok(Some(Method::Initialize)),
        ),
        (
            &[version],
            request("initialize", ""),
            Ok(Some(Method::Initialize)),
        ),
        (
            &[("mcp-protocol-version", "2025-06-18")],
            request("initialize", ""),
            Ok(Some(Method::Initialize)),
        ),
        (
            &[version, session],
            request("tools/list", ""),
            Ok(Some(Method::ToolsList)),
        ),
        (&[session], request("ping", ""), Ok(Some(Method::Ping))),
        (&[], request("tools/list", ""), Ok(Some(Method::ToolsList))),
        (
            &[("mcp-protocol-version", "2025-06-18"), session],
            request("ping", ""),
            Ok(Some(Method::Ping)),
        ),
        (
            &[("mcp-protocol-version", "nonsense"), session],
            request("ping", ""),
            Err(Code::VersionUnsupported),
        ),
        (
            &[version, session, ("mcp-method", "ping")],
            request("tools/list", ""),
            Err(Code::HeaderMismatch),
        ),
        (
            &[version, session],
            request("server/discover", ""),
            Err(Code::MethodUnknown),
        ),
        (
            &[version, session],
            r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#.into(),
            Ok(Some(Method::RootsChanged)),
        ),
        (
            &[version, session],
            r#"{"jsonrpc":"2.0","method":"notifications/unheard_of"}"#.into(),
            Ok(None),
        ),
        (
            &[version, session],
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.into(),
            Ok(None),
        ),
    ] {
        assert_eq!(
            judge(headers, &body),
            (Era::Legacy, expected),
            "{headers:?} {body}"
        );
    }
}

#[test]
fn an_unsupported_version_is_echoed() {
    let body = request("tools/list", &META.replace("2026-07-28", "1.0"));
    let map = map(&[
        ("mcp-protocol-version", "1.0"),
        ("mcp-method", "tools/list"),
    ]);
    let headers = ProtocolHeaders::read(&map).expect("headers");
    let message = Envelope::inbound(body.as_bytes()).expect("a request");
    let rejection = check_modern(&headers, &message).expect_err("unsupported");
    assert_eq!(rejection.requested.as_deref(), Some("1.0"));
}

proptest! {
    #[test]
    fn every_name_survives_its_header(name: String) {
        let header = encode(&name);
        let text = header.to_str().expect("visible ASCII").trim_matches([' ', '\t']).to_owned();
        let decoded = decode(&text);
        prop_assert_eq!(decoded.as_deref(), Some(name.as_str()));
    }
}
