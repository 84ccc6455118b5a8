//! What of a request goes on to the server: the same bytes, under our own id, offering only what is relayed.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header::CONNECTION};

use super::questions;
use crate::{
    mcp::{
        Envelope, Revision,
        capabilities::Offer,
        envelope::{member_cut, splice},
        headers::{METHOD, NAME, PROTOCOL_VERSION},
        scan::Part,
    },
    policy::Relay,
    refusal::{Code, Refusal},
};

/// Headers that mirror annotated arguments (MCP 2026-07-28, transports); intermediaries pass them on.
const PARAM_PREFIX: &str = "mcp-param-";

/// The request's body for the server: its id replaced by `id`, which is unique on every server, so that two callers
/// with equal ids can never be taken for one another.
pub(super) fn body(message: &Envelope<'_>, body: &Bytes, relay: Relay, id: u64) -> Bytes {
    let mut buffer = itoa::Buffer::new();
    let mut edits: Vec<(Range<usize>, &[u8])> = Vec::with_capacity(4);
    if let Some(own) = message.id {
        edits.push((own.part().range(), buffer.format(id).as_bytes()));
    }
    let offer = offer(message, relay);
    if let (Some(offer), Some(part)) = (&offer, capabilities(message)) {
        edits.push((part.range(), offer.as_json().as_bytes()));
    }
    if let Some(meta) = message.meta() {
        // Tollgate's own keys are between the agent and Tollgate.
        edits.extend(
            meta.own
                .iter()
                .map(|(_, part)| (part.range(), &b"null"[..])),
        );
    }
    // Tasks are withheld: without this member, every server answers in line (MCP 2025-11-25, tasks).
    if let Some(task) = message.params.as_ref().and_then(|params| params.task) {
        edits.push((member_cut(body, task.range()), b""));
    }
    edits.sort_by_key(|(range, _)| range.start);
    splice(body, &edits).into()
}

/// What of the client's capabilities a modern request offers; `None` where it has none.
fn offer(message: &Envelope<'_>, relay: Relay) -> Option<Offer> {
    let part = capabilities(message).filter(|part| part.as_str() != "{}")?;
    Some(Offer::new(Some(part), |question| {
        questions::relayed(relay, question)
    }))
}

fn capabilities<'a>(message: &Envelope<'a>) -> Option<Part<'a>> {
    message.meta()?.client_capabilities
}

/// The headers of a modern request: built anew, so that nothing else of the caller's goes along.
pub(super) fn headers(message: &Envelope<'_>, from: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(
        PROTOCOL_VERSION,
        HeaderValue::from_static(Revision::MODERN.as_str()),
    );
    // Held against the body already, so the caller's own spelling is the right one.
    if let Some(method) = from.get(METHOD) {
        headers.insert(METHOD, method.clone());
    }
    if let (Some(name), Some(_)) = (from.get(NAME), crate::mcp::headers::mirrored_name(message)) {
        headers.insert(NAME, name.clone());
    }
    for (name, value) in from {
        if name.as_str().starts_with(PARAM_PREFIX) && !hop_by_hop(name, from) {
            headers.insert(name.clone(), value.clone());
        }
    }
    headers
}

/// Headers that mirror arguments stand once each, in visible ASCII (MCP 2026-07-28, transports).
pub(super) fn check_params(from: &HeaderMap) -> Result<(), Refusal> {
    for name in from
        .keys()
        .filter(|name| name.as_str().starts_with(PARAM_PREFIX))
    {
        let mut values = from.get_all(name).iter();
        let one = values.next();
        if values.next().is_some() {
            return Err(Refusal::new(
                Code::HeaderDuplicate,
                format!("header `{name}` stands twice"),
            ));
        }
        if one.is_some_and(|value| value.to_str().is_err()) {
            return Err(Refusal::new(
                Code::HeaderMismatch,
                format!("header `{name}` is not visible ASCII"),
            ));
        }
    }
    Ok(())
}

/// Whether `Connection` says that a header is for this connection only (RFC 9110, section 7.6.1).
fn hop_by_hop(name: &HeaderName, from: &HeaderMap) -> bool {
    let listed = from
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok());
    listed
        .flat_map(|value| value.split(','))
        .any(|option| option.trim().eq_ignore_ascii_case(name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(text: &'static str, id: u64) -> String {
        let message = Envelope::inbound(text.as_bytes()).expect("a valid message");
        let out = body(
            &message,
            &Bytes::from_static(text.as_bytes()),
            Relay::default(),
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
        let names: Vec<_> = headers(&message, &from)
            .keys()
            .map(|name| name.as_str().to_owned())
            .collect();
        assert_eq!(
            names,
            [
                "mcp-protocol-version",
                "mcp-method",
                "mcp-name",
                "mcp-param-region"
            ]
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
        assert!(!headers(&message, &from).contains_key("mcp-param-region"));
    }
}
