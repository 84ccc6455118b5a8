//! A page of Tollgate's own that a person opens before a request can go on.

use bytes::Bytes;
use serde::Serialize;

use super::{json, response};
use crate::refusal::Refusal;

/// The error that has a client open pages (MCP 2025-11-25, elicitation).
const PAGES_WANTED: i32 = -32042;

/// A page, and what people are told of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Page<'a> {
    mode: &'a str,
    message: &'a str,
    url: &'a str,
    /// Only of errors; unique.
    #[serde(rename = "elicitationId", skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

#[derive(Serialize)]
struct Wanted<'a> {
    code: i32,
    message: &'a str,
    data: WantedData<'a>,
}

#[derive(Serialize)]
struct WantedData<'a> {
    code: &'a str,
    remedy: &'a str,
    elicitations: [Page<'a>; 1],
}

#[derive(Serialize)]
struct Question<'a> {
    method: &'a str,
    params: Page<'a>,
}

impl<'a> Page<'a> {
    /// The page at `url`, with the reason for it.
    pub fn new(url: &'a str, message: &'a str) -> Self {
        Self {
            mode: "url",
            message,
            url,
            id: None,
        }
    }

    /// The error that refuses a request until the page was used; `elicitation` is a name for this asking.
    pub fn wanted(self, id: &str, refusal: &Refusal, elicitation: &str) -> Bytes {
        let page = Page {
            id: Some(elicitation),
            ..self
        };
        let error = Wanted {
            code: PAGES_WANTED,
            message: &refusal.text(),
            data: WantedData {
                code: refusal.code.as_str(),
                remedy: refusal.code.remedy(),
                elicitations: [page],
            },
        };
        response(Some(id), "error", &json(&error))
    }

    /// The result that asks for the page; the request is repeated with `state`, which needs no escapes in JSON.
    pub fn asked(self, id: &str, key: &str, state: &str) -> Bytes {
        let question = Question {
            method: "elicitation/create",
            params: self,
        };
        let question = String::from_utf8(json(&question)).expect("JSON is UTF-8");
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{"{key}":{question}}},"requestState":"{state}"}}"#
        );
        response(Some(id), "result", result.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Code;

    const PAGE: &str = "https://gate.example/connect/s";

    #[test]
    fn an_error_names_the_page_and_why() {
        let refusal = Refusal::new(Code::ConnectRequired, "you are not connected to server `s`");
        let text = Page::new(PAGE, "why \"so\"").wanted("7", &refusal, "e-1");
        assert_eq!(
            text,
            concat!(
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32042,"#,
                r#""message":"connect.required: you are not connected to server `s`; open the link and connect there, then call again","#,
                r#""data":{"code":"connect.required","remedy":"open the link and connect there, then call again","#,
                r#""elicitations":[{"mode":"url","message":"why \"so\"","url":"https://gate.example/connect/s","elicitationId":"e-1"}]}}}"#
            )
        );
    }

    #[test]
    fn a_result_asks_for_the_page_and_gives_a_state() {
        let text = Page::new(PAGE, "why").asked(r#""a""#, "connect", "sealed");
        assert_eq!(
            text,
            concat!(
                r#"{"jsonrpc":"2.0","id":"a","result":{"resultType":"input_required","#,
                r#""inputRequests":{"connect":{"method":"elicitation/create","params":{"mode":"url","message":"why","#,
                r#""url":"https://gate.example/connect/s"}}},"requestState":"sealed"}}"#
            )
        );
    }
}
