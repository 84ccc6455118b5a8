//! JSON of our own: requests that Tollgate makes for itself, and capabilities cut to what is relayed.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    mcp::{
        Era, Revision,
        headers::{METHOD, PROTOCOL_VERSION},
    },
    upstream::{Edit, Message},
};

/// Whether notifications outside a call reach the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listening {
    /// Over a session's stream.
    Yes,
    /// Not in this version.
    No,
}

/// The headers of a modern request that has no name.
pub(super) fn headers(method: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(6);
    headers.insert(
        PROTOCOL_VERSION,
        HeaderValue::from_static(Revision::MODERN.as_str()),
    );
    headers.insert(METHOD, HeaderValue::from_static(method));
    headers
}

/// A `tools/list` of our own; `cursor` is JSON text.
pub(super) fn list_body(era: Era, id: u64, cursor: Option<&str>) -> Bytes {
    let mut params = Vec::new();
    if let Some(cursor) = cursor {
        params.push(format!(r#""cursor":{cursor}"#));
    }
    if era == Era::Modern {
        params.push(format!(
            concat!(
                r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{}","#,
                r#""io.modelcontextprotocol/clientInfo":{{"name":"tollgate","version":"{}"}},"#,
                r#""io.modelcontextprotocol/clientCapabilities":{{}}}}"#
            ),
            Revision::MODERN,
            env!("CARGO_PKG_VERSION"),
        ));
    }
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{}}}}}"#,
        params.join(",")
    )
    .into()
}

#[derive(Deserialize)]
struct Capabilities<'a> {
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
}

/// The capabilities that a client is told: tools, if the server has any.
pub(super) fn capabilities(server: Option<&RawValue>, listening: Listening) -> String {
    let known = server.and_then(|raw| serde_json::from_str::<Capabilities<'_>>(raw.get()).ok());
    match (known.and_then(|known| known.tools), listening) {
        (None, _) => "{}".to_owned(),
        (Some(tools), Listening::Yes) => format!(r#"{{"tools":{}}}"#, tools.get()),
        (Some(_), Listening::No) => r#"{"tools":{}}"#.to_owned(),
    }
}

/// Edits that replace parts of a result; parts that it does not have are left out.
pub(super) fn edits<const N: usize>(
    message: &Message,
    parts: [(Option<&RawValue>, String); N],
) -> Vec<Edit> {
    let place = |part: Option<&RawValue>| message.part_of_result(part?.get());
    parts
        .into_iter()
        .filter_map(|(part, text)| {
            Some(Edit {
                place: place(part)?,
                text,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_lists_are_json_in_both_eras() {
        for era in [Era::Modern, Era::Legacy] {
            for cursor in [None, Some(r#""a\"b""#)] {
                let body = list_body(era, 7, cursor);
                let value: serde_json::Value = serde_json::from_slice(&body).expect("valid JSON");
                assert_eq!(value["id"], 7);
                assert_eq!(value["params"]["cursor"].as_str(), cursor.map(|_| "a\"b"));
                assert_eq!(value["params"]["_meta"].is_object(), era == Era::Modern);
            }
        }
    }

    #[test]
    fn only_relayed_capabilities_are_told() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("valid JSON");
        let server = raw(r#"{"prompts":{},"tools":{"listChanged":true,"x":1},"logging":{}}"#);
        assert_eq!(
            capabilities(Some(&server), Listening::Yes),
            r#"{"tools":{"listChanged":true,"x":1}}"#
        );
        assert_eq!(
            capabilities(Some(&server), Listening::No),
            r#"{"tools":{}}"#
        );
        assert_eq!(
            capabilities(Some(&raw(r#"{"prompts":{}}"#)), Listening::Yes),
            "{}"
        );
        assert_eq!(capabilities(None, Listening::Yes), "{}");
    }
}
