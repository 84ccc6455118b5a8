//! Refusals as HTTP answers.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use serde_json::json;

use crate::refusal::{Code, Refusal, Shape};

/// The body of an answer: our own text, or what stands behind the door.
#[derive(Debug)]
pub enum Answer<B> {
    /// A text of the listener's own; `None` once it was taken.
    Text(Option<Bytes>),
    /// The answer of the gateway.
    Reply(B),
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answer<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut *self {
            Self::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Reply(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Text(text) => text.is_none(),
            Self::Reply(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
            Self::Reply(body) => body.size_hint(),
        }
    }
}

/// A text with its type.
pub(super) fn text<B>(
    status: StatusCode,
    kind: &'static str,
    text: impl Into<Bytes>,
) -> Response<Answer<B>> {
    let mut answer = Response::new(Answer::Text(Some(text.into())));
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// A refusal, in the shape that its code has outside of tool results; `allow` lists the methods that are served.
pub(super) fn refusal<B>(refusal: &Refusal, allow: &'static str) -> Response<Answer<B>> {
    let code = refusal.code;
    let body = match code.shape() {
        Shape::Rpc(number) => json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": { "code": number, "message": refusal.text(), "data": { "code": code.as_str() } },
        }),
        Shape::Http | Shape::Tool => json!({
            "error": { "code": code.as_str(), "message": refusal.public, "remedy": code.remedy() },
        }),
    };
    // 499 is no status for the wire; nobody is there to read it either.
    let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let mut answer = text(status, "application/json", body.to_string());
    let headers = answer.headers_mut();
    match code {
        Code::EvidenceMissing => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // RFC 6750, section 3.1.
        Code::EvidenceInvalid | Code::EvidenceExpired => {
            let challenge = HeaderValue::from_static("Bearer error=\"invalid_token\"");
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        Code::MethodNotAllowed => {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        // As who finds no seat is told.
        Code::Overloaded => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        _ => {}
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(answer: Response<Answer<http_body_util::Empty<Bytes>>>) -> String {
        let Answer::Text(Some(text)) = answer.into_body() else {
            panic!("a text");
        };
        String::from_utf8(text.to_vec()).unwrap()
    }

    #[test]
    fn a_refusal_says_code_message_and_remedy() {
        let answer = refusal(
            &Refusal::new(Code::BodyTooLarge, "the body is larger than 9 bytes"),
            "GET",
        );
        assert_eq!(answer.status(), 413);
        assert_eq!(
            body(answer),
            r#"{"error":{"code":"listen.body_too_large","message":"the body is larger than 9 bytes","remedy":"send less, or let the operator raise limits.request_bytes"}}"#
        );
    }

    #[test]
    fn protocol_faults_speak_json_rpc() {
        let answer = refusal(
            &Refusal::new(
                Code::HeaderDuplicate,
                "`Tollgate-Turn` stands more than once",
            ),
            "GET",
        );
        assert_eq!(answer.status(), 400);
        let json: serde_json::Value = serde_json::from_str(&body(answer)).unwrap();
        assert_eq!(json["error"]["code"], -32020);
        assert_eq!(json["id"], serde_json::Value::Null);
    }
}
