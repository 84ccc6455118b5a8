//! What an HTTP response of a tool server means.

use http::{StatusCode, header};

use super::{Error, Message, Messages, resume::Way};
use crate::{
    egress::{Body, Fields},
    policy::Permit,
};

/// An answer: there already, or still coming.
pub enum Answer {
    /// One JSON body.
    Whole(Message),
    /// An event stream that will end with the answer.
    Stream(Box<Messages>),
}

impl Answer {
    /// The same, resumed by `way` where it is a stream that ends too soon.
    pub(super) fn resumable(self, way: impl FnOnce() -> Way) -> Self {
        match self {
            Self::Stream(messages) => Self::Stream(Box::new(messages.by(way()))),
            whole => whole,
        }
    }

    /// The answer itself, waited for; what a stream says before it is passed over.
    pub(super) async fn whole(self) -> Result<Message, Error> {
        match self {
            Self::Whole(message) => Ok(message),
            Self::Stream(mut messages) => messages.only_answer().await,
        }
    }
}

/// Reads the answer to the request `id`, of which the head has come.
pub(super) async fn read(
    permit: &Permit,
    id: u64,
    status: StatusCode,
    headers: Fields,
    body: Box<Body>,
) -> Result<Answer, Error> {
    let server = &permit.server().name;
    if let StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN = status {
        return Err(status_error(permit, status));
    }
    match Type::of(&headers) {
        Type::Json => {
            let cap = permit.server().limits.response_bytes;
            let body = body.collect(cap).await.map_err(|source| Error::Egress {
                server: server.clone(),
                source,
                destination: None,
            })?;
            match Message::read(permit, id, status, body) {
                Ok(message) if status.is_success() || message.error_code().is_some() => {
                    Ok(Answer::Whole(message))
                }
                Err(error) if status.is_success() => Err(error),
                Ok(_) | Err(_) => Err(status_error(permit, status)),
            }
        }
        Type::Events if status == StatusCode::OK => Ok(Answer::Stream(Box::new(
            Messages::answering(permit, id, body),
        ))),
        _ if !status.is_success() => Err(status_error(permit, status)),
        _ if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT => {
            Err(Error::NoAnswer {
                server: server.clone(),
            })
        }
        _ => Err(content_type_error(permit, &headers)),
    }
}

/// The error that a status without a usable body stands for.
pub(super) fn status_error(permit: &Permit, status: StatusCode) -> Error {
    let server = permit.server().name.clone();
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Error::Unauthorized {
            server,
            status: status.as_u16(),
        },
        _ => Error::Status {
            server,
            status: status.as_u16(),
        },
    }
}

pub(super) fn content_type_error(permit: &Permit, headers: &Fields) -> Error {
    let found = headers
        .get(&header::CONTENT_TYPE)
        .and_then(|value| std::str::from_utf8(value).ok())
        .filter(|value| value.is_ascii());
    Error::ContentType {
        server: permit.server().name.clone(),
        found: found
            .unwrap_or("no content type")
            .chars()
            .take(64)
            .collect(),
    }
}

/// What a body is said to be.
pub(super) enum Type {
    Json,
    Events,
    Other,
}

impl Type {
    pub(super) fn of(headers: &Fields) -> Self {
        let value = headers.get(&header::CONTENT_TYPE).unwrap_or_default();
        let parameters = value.iter().position(|byte| *byte == b';');
        let essence = value[..parameters.unwrap_or(value.len())].trim_ascii();
        if essence.eq_ignore_ascii_case(b"application/json") {
            Self::Json
        } else if essence.eq_ignore_ascii_case(b"text/event-stream") {
            Self::Events
        } else {
            Self::Other
        }
    }
}
