//! HTTP: which messages come in, and in what form the answer goes out.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Method as Verb, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited, combinators::UnsyncBoxBody};
use hyper::body::Incoming;

use super::{State, protocol};
use crate::{
    mcp::{
        Envelope, Era, Rejection,
        headers::{self, ProtocolHeaders, SESSION_ID},
        reply,
    },
    refusal::{Code, Refusal},
};

/// The longest request body, in bytes.
const MAX_BODY: usize = 64 << 10;

/// What an answer's body is.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: ReplyBody,
    /// A session that this answer begins.
    pub(super) session: Option<String>,
}

pub(super) enum ReplyBody {
    None,
    Json(Bytes),
    Events(UnsyncBoxBody<Bytes, Infallible>),
}

impl Reply {
    /// An answer in JSON.
    pub(super) fn json(body: Bytes) -> Self {
        Self {
            status: StatusCode::OK,
            body: ReplyBody::Json(body),
            session: None,
        }
    }

    /// An answer without a body.
    pub(super) fn bare(status: StatusCode) -> Self {
        Self {
            status,
            body: ReplyBody::None,
            session: None,
        }
    }
}

/// Answers one request.
pub(super) async fn answer(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible> {
    let reply = read(&state, request)
        .await
        .unwrap_or_else(|(era, rejection)| {
            let (status, body) = reply::refused(era, None, &rejection);
            Reply {
                status,
                ..Reply::json(body)
            }
        });
    Ok(respond(reply))
}

async fn read(state: &Arc<State>, request: Request<Incoming>) -> Result<Reply, (Era, Rejection)> {
    let (head, body) = request.into_parts();
    let early = |rejection: Rejection| (Era::Modern, rejection);
    if head.uri.path() != "/mcp" {
        return Ok(Reply::bare(StatusCode::NOT_FOUND));
    }
    if head.headers.contains_key(header::ORIGIN) {
        return Err(early(Rejection::new(
            Code::BadOrigin,
            "this server is not for browsers",
        )));
    }
    let protocol = ProtocolHeaders::read(&head.headers).map_err(|refusal| early(refusal.into()))?;
    if head.method == Verb::DELETE {
        let session = protocol.session_id.unwrap_or_default();
        state.end_session(session);
        return Ok(Reply::bare(StatusCode::NO_CONTENT));
    }
    if head.method != Verb::POST {
        return Ok(Reply::bare(StatusCode::METHOD_NOT_ALLOWED));
    }
    if !headers::accepts_answers(&head.headers) {
        return Err(early(Rejection::new(
            Code::Accept,
            "an answer could not be read by this client",
        )));
    }
    if !protocol.content_type.is_some_and(headers::is_json) {
        return Err(early(Rejection::new(
            Code::ContentType,
            "the body is not declared as JSON",
        )));
    }
    let body = Limited::new(body, MAX_BODY)
        .collect()
        .await
        .map_err(|error| {
            early(
                Refusal::new(
                    Code::BodyTooLarge,
                    format!("the body cannot be read: {error}"),
                )
                .into(),
            )
        })?;
    let body = body.to_bytes();
    let message = Envelope::inbound(&body).map_err(early)?;
    let era = headers::era(&protocol, &message);
    protocol::answer(state, era, &protocol, &message).map_err(|rejection| (era, rejection))
}

fn respond(reply: Reply) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
    let (content_type, body) = match reply.body {
        ReplyBody::None => (None, Full::default().boxed_unsync()),
        ReplyBody::Json(body) => (Some("application/json"), Full::new(body).boxed_unsync()),
        ReplyBody::Events(body) => (Some("text/event-stream"), body),
    };
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    if let Some(content_type) = content_type {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    if let Some(session) = reply
        .session
        .and_then(|session| HeaderValue::try_from(session).ok())
    {
        headers.insert(SESSION_ID, session);
    }
    response
}
