//! Requests that Tollgate makes for itself.

use bytes::Bytes;
use http::HeaderValue;

use crate::{
    egress::FieldLines,
    mcp::{
        Era, Method, Revision,
        headers::{METHOD, PROTOCOL_VERSION},
        items::List,
    },
};

/// The header fields of a modern request that has no name.
pub fn fields(method: Method) -> FieldLines {
    let mut fields = FieldLines::new();
    let revision = HeaderValue::from_static(Revision::MODERN.as_str());
    fields.add(&PROTOCOL_VERSION, &revision);
    fields.add(&METHOD, &HeaderValue::from_static(method.as_str()));
    fields
}

/// A request of our own for a page of `list`; `cursor` is JSON text, and so is `capabilities`, what the client offers.
pub fn list_body(list: List, era: Era, id: u64, cursor: Option<&str>, capabilities: &str) -> Bytes {
    body(list.method(), era, id, cursor, capabilities)
}

/// A `server/discover` of our own; `capabilities` as in [`list_body`].
pub fn discover_body(id: u64, capabilities: &str) -> Bytes {
    body(Method::Discover, Era::Modern, id, None, capabilities)
}

fn body(method: Method, era: Era, id: u64, cursor: Option<&str>, capabilities: &str) -> Bytes {
    let mut params = Vec::new();
    if let Some(cursor) = cursor {
        params.push(format!(r#""cursor":{cursor}"#));
    }
    if era == Era::Modern {
        params.push(format!(
            concat!(
                r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{}","#,
                r#""io.modelcontextprotocol/clientInfo":{{"name":"tollgate","version":"{}"}},"#,
                r#""io.modelcontextprotocol/clientCapabilities":{}}}"#
            ),
            Revision::MODERN,
            env!("CARGO_PKG_VERSION"),
            capabilities,
        ));
    }
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{}","params":{{{}}}}}"#,
        method.as_str(),
        params.join(",")
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_discoveries_name_the_revision_and_offer_what_is_given() {
        let body = discover_body(7, r#"{"roots":{}}"#);
        let value: serde_json::Value = serde_json::from_slice(&body).expect("valid JSON");
        let meta = &value["params"]["_meta"];
        assert_eq!(
            (&value["id"], &value["method"]),
            (&7.into(), &"server/discover".into())
        );
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        assert_eq!(
            meta["io.modelcontextprotocol/clientCapabilities"].to_string(),
            r#"{"roots":{}}"#
        );
    }

    #[test]
    fn own_lists_are_json_in_both_eras() {
        for era in [Era::Modern, Era::Legacy] {
            for cursor in [None, Some(r#""a\"b""#)] {
                let body = list_body(List::Prompts, era, 7, cursor, r#"{"roots":{}}"#);
                let value: serde_json::Value = serde_json::from_slice(&body).expect("valid JSON");
                assert_eq!(value["id"], 7);
                assert_eq!(value["method"], "prompts/list");
                assert_eq!(value["params"]["cursor"].as_str(), cursor.map(|_| "a\"b"));
                assert_eq!(value["params"]["_meta"].is_object(), era == Era::Modern);
            }
        }
    }
}
