//! What Tollgate says itself: errors, tool results that are refusals, results of its own.

mod page;

use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use serde::Serialize;

pub use page::Page;

use super::{Era, Rejection, Revision, methods::Method};
use crate::refusal::{Code, Fault, Refusal, Shape};

/// JSON-RPC's internal error, for refusals that only `tools/call` can carry as a result.
const INTERNAL: i32 = -32603;

#[derive(Serialize)]
struct ErrorObject<'a> {
    code: i32,
    message: &'a str,
    data: ErrorData<'a>,
}

#[derive(Serialize)]
struct ErrorData<'a> {
    code: &'a str,
    remedy: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    supported: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    requested: Option<&'a str>,
}

#[derive(Serialize)]
struct ToolResult<'a> {
    content: [Text<'a>; 1],
    #[serde(rename = "isError")]
    is_error: bool,
    #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
    result_type: Option<&'a str>,
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct HttpBody<'a> {
    error: HttpError<'a>,
}

#[derive(Serialize)]
struct HttpError<'a> {
    code: &'a str,
    message: &'a str,
    remedy: &'a str,
}

/// A refused message as an answer: the status, and a JSON body.
///
/// A refusal that a model can act on is a tool result where the method is `tools/call` and an error elsewhere.
pub fn refused(era: Era, method: Option<Method>, rejection: &Rejection) -> (StatusCode, Bytes) {
    let refusal = &rejection.refusal;
    let body = match (refusal.code.shape(), rejection.id.as_deref()) {
        (Shape::Http, _) => plain(refusal),
        (Shape::Tool, Some(id)) if method == Some(Method::ToolsCall) => {
            tool_refusal(era, id, refusal)
        }
        _ => error(era, rejection),
    };
    let status = match &rejection.id {
        Some(_) => status(era, refusal.code),
        None => status_alone(refusal.code),
    };
    (status, body)
}

/// The HTTP status of a refusal. Legacy clients read errors of methods and parameters from a 200.
fn status(era: Era, code: Code) -> StatusCode {
    let status = match (era, code) {
        (Era::Legacy, Code::MethodUnknown | Code::InvalidParams) => 200,
        _ => code.status(),
    };
    StatusCode::from_u16(status).expect("the table of codes holds HTTP statuses")
}

/// The status where no JSON-RPC id says what failed: a stream that did not open, a notification that was not taken.
/// It alone tells the client then, so it is never a 200.
fn status_alone(code: Code) -> StatusCode {
    match (code.status(), code.fault()) {
        (200, Fault::Internal) => StatusCode::SERVICE_UNAVAILABLE,
        (200, _) => StatusCode::BAD_GATEWAY,
        _ => status(Era::Modern, code),
    }
}

/// A JSON-RPC error to a client of that era. Without an id, the member is absent, as the schema of MCP has it.
pub fn error(era: Era, rejection: &Rejection) -> Bytes {
    let refusal = &rejection.refusal;
    let code = match refusal.code.shape() {
        Shape::Rpc(code) => code,
        Shape::Http | Shape::Tool => INTERNAL,
    };
    let text = refusal.text();
    // What could be asked for instead, without another way to ask.
    let served = Revision::SERVED
        .into_iter()
        .filter(|served| served.era() == era);
    let supported: Vec<&str> = match refusal.code {
        Code::VersionUnsupported => served.map(Revision::as_str).collect(),
        Code::UpstreamEra => vec![Revision::MODERN.as_str()],
        _ => Vec::new(),
    };
    let supported = &*supported;
    let object = ErrorObject {
        code,
        message: &text,
        data: ErrorData {
            code: refusal.code.as_str(),
            remedy: refusal.code.remedy(),
            supported,
            requested: (!supported.is_empty())
                .then(|| rejection.requested.as_deref().unwrap_or_default()),
        },
    };
    response(rejection.id.as_deref(), "error", &json(&object))
}

/// A tool result that tells a model why its call was refused.
fn tool_refusal(era: Era, id: &str, refusal: &Refusal) -> Bytes {
    let text = refusal.text();
    let result = ToolResult {
        content: [Text {
            r#type: "text",
            text: &text,
        }],
        is_error: true,
        result_type: (era == Era::Modern).then_some("complete"),
    };
    response(Some(id), "result", &json(&result))
}

/// The answer to a request that has nothing to say, such as `ping`.
pub fn empty(era: Era, id: &str) -> Bytes {
    let result: &[u8] = match era {
        Era::Modern => br#"{"resultType":"complete"}"#,
        Era::Legacy => b"{}",
    };
    response(Some(id), "result", result)
}

/// The answer that ends a subscription in order (MCP 2026-07-28, subscriptions).
pub fn unsubscribed(id: &str) -> Bytes {
    let result = format!(
        r#"{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#
    );
    response(Some(id), "result", result.as_bytes())
}

/// A response with this result, a JSON text.
pub fn result(id: &str, result: &[u8]) -> Bytes {
    response(Some(id), "result", result)
}

/// The JSON body of an answer that is no JSON-RPC message.
fn plain(refusal: &Refusal) -> Bytes {
    let body = HttpBody {
        error: HttpError {
            code: refusal.code.as_str(),
            message: &refusal.public,
            remedy: refusal.code.remedy(),
        },
    };
    json(&body).into()
}

/// `{"jsonrpc":"2.0","id":ID,MEMBER:VALUE}`; the id is JSON text and stays as the client wrote it.
fn response(id: Option<&str>, member: &str, value: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(40 + id.map_or(0, str::len) + value.len());
    out.put_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        out.put_slice(br#""id":"#);
        out.put_slice(id.as_bytes());
        out.put_u8(b',');
    }
    out.put_u8(b'"');
    out.put_slice(member.as_bytes());
    out.put_slice(b"\":");
    out.put_slice(value);
    out.put_u8(b'}');
    out.freeze()
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("structs of strings and numbers serialise")
}

#[cfg(test)]
mod tests;
