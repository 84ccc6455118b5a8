//! MCP: what each method does, in either era.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};

use super::{
    State,
    http::{Reply, ReplyBody},
    tools::{self, Called},
};
use crate::{
    mcp::{
        Envelope, Era, Kind, Method, Rejection, Revision, headers, headers::ProtocolHeaders, reply,
        sse,
    },
    refusal::Code,
};

/// Answers one message.
pub(super) fn answer(
    state: &Arc<State>,
    era: Era,
    protocol: &ProtocolHeaders<'_>,
    message: &Envelope<'_>,
) -> Result<Reply, Rejection> {
    let method = match era {
        Era::Modern => headers::check_modern(protocol, message)?,
        Era::Legacy => {
            let method = headers::check_legacy(protocol, message)?;
            check_session(state, protocol, message, method)?;
            method
        }
    };
    let Some(id) = message.id_text().filter(|_| message.kind == Kind::Request) else {
        return Ok(Reply::bare(StatusCode::ACCEPTED));
    };
    match method {
        Some(Method::Initialize) => Ok(Reply {
            session: Some(state.begin_session()),
            ..result(id, &initialized())
        }),
        Some(Method::Discover) => Ok(result(id, &discovered())),
        Some(Method::Ping) => Ok(Reply::json(reply::empty(era, id))),
        Some(Method::ToolsList) => Ok(result(id, &listed(era))),
        Some(Method::ToolsCall) => {
            call(state, era, id, message).map_err(|rejection| rejection.with_id(Some(id)))
        }
        _ => Err(Rejection::new(Code::MethodUnknown, "no such request").with_id(Some(id))),
    }
}

fn check_session(
    state: &State,
    protocol: &ProtocolHeaders<'_>,
    message: &Envelope<'_>,
    method: Option<Method>,
) -> Result<(), Rejection> {
    let code = match protocol.session_id {
        _ if method == Some(Method::Initialize) => return Ok(()),
        Some(session) if state.has_session(session) => return Ok(()),
        Some(_) => Code::SessionUnknown,
        None => Code::SessionRequired,
    };
    Err(Rejection::new(code, "no session").with_id(message.id_text()))
}

fn server_info() -> Value {
    json!({ "name": "tollgate-demo-tools", "version": env!("CARGO_PKG_VERSION") })
}

fn initialized() -> Value {
    json!({
        "protocolVersion": Revision::LEGACY.as_str(),
        "capabilities": { "tools": {} },
        "serverInfo": server_info(),
    })
}

fn discovered() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": [Revision::MODERN.as_str(), Revision::LEGACY.as_str()],
        "capabilities": { "tools": {} },
        "ttlMs": 60_000,
        "cacheScope": "public",
        "_meta": { "io.modelcontextprotocol/serverInfo": server_info() },
    })
}

fn listed(era: Era) -> Value {
    match era {
        Era::Modern => json!({
            "resultType": "complete",
            "tools": tools::definitions(),
            "ttlMs": 60_000,
            "cacheScope": "public",
        }),
        Era::Legacy => json!({ "tools": tools::definitions() }),
    }
}

fn call(
    state: &Arc<State>,
    era: Era,
    id: &str,
    message: &Envelope<'_>,
) -> Result<Reply, Rejection> {
    let params = message.params.as_ref();
    let name = params.and_then(|params| params.name?.string());
    let name = name.ok_or_else(|| Rejection::new(Code::InvalidParams, "`name` is not a string"))?;
    let arguments = match params.and_then(|params| params.arguments) {
        Some(part) => serde_json::from_str(part.as_str()).map_err(|error| {
            Rejection::new(Code::InvalidParams, format!("`arguments`: {error}"))
        })?,
        None => Value::Null,
    };
    match tools::call(state, &name, &arguments)? {
        Called::Text { text, is_error } => Ok(result(id, &tool_result(era, &text, is_error))),
        Called::Count { to } => {
            let token = message.meta().and_then(|meta| meta.progress_token);
            let last = reply::result(
                id,
                tool_result(era, &format!("counted to {to}"), false)
                    .to_string()
                    .as_bytes(),
            );
            Ok(Reply {
                body: ReplyBody::Events(count(
                    state.tick,
                    to,
                    token.map(|token| token.as_str().to_owned()),
                    last,
                )),
                ..Reply::bare(StatusCode::OK)
            })
        }
    }
}

/// A stream of `to` progress notifications, one a tick, then the answer.
fn count(
    tick: Duration,
    to: u64,
    token: Option<String>,
    last: Bytes,
) -> http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible> {
    let events = stream::unfold(1, move |number| {
        let (token, last) = (token.clone(), last.clone());
        async move {
            if number > to + 1 {
                return None;
            }
            if number > to {
                return Some((sse::frame(&last), number + 1));
            }
            tokio::time::sleep(tick).await;
            let event = match token {
                Some(token) => sse::frame(progress(&token, number, to).as_bytes()),
                None => sse::KEEP_ALIVE,
            };
            Some((event, number + 1))
        }
    });
    let frames = futures_util::StreamExt::map(events, |event| Ok(Frame::data(event)));
    StreamBody::new(frames).boxed_unsync()
}

/// A progress notification; the token is JSON text and goes back as the client wrote it.
fn progress(token: &str, number: u64, to: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{number},"total":{to},"message":"counted {number} of {to}"}}}}"#
    )
}

fn tool_result(era: Era, text: &str, is_error: bool) -> Value {
    let mut result = json!({ "content": [{ "type": "text", "text": text }], "isError": is_error });
    if era == Era::Modern {
        result["resultType"] = "complete".into();
    }
    result
}

fn result(id: &str, value: &Value) -> Reply {
    Reply::json(reply::result(id, value.to_string().as_bytes()))
}
