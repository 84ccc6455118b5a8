//! Why a plain request has no answer, or not the whole of one.

use std::{io, time::Duration};

use crate::{
    egress::{Error, Fault},
    refusal::{Code, Refusal},
};

/// A request that came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum PlainError {
    /// It did not leave, or its answer could not be used.
    #[error(transparent)]
    Egress(#[from] Error),
    /// The body of the request is malformed.
    #[error("the body of the request is malformed")]
    Body(#[source] Fault),
    /// The client went on with neither the body nor an end.
    #[error("the client sent nothing for {0:?} in the middle of its body")]
    SlowBody(Duration),
    /// The client closed its connection within its request.
    #[error("the client closed its connection before its request was whole")]
    Closed,
    /// The client's connection broke.
    #[error("the client's connection broke")]
    Gone(#[source] io::Error),
    /// The client took nothing for so long.
    #[error("the client took nothing for {0:?}")]
    SlowReader(Duration),
}

impl PlainError {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::Egress(error) => error.code(),
            Self::Body(_) => Code::BodyBroken,
            Self::SlowBody(_) => Code::SlowBody,
            Self::Closed | Self::Gone(_) | Self::SlowReader(_) => Code::ClientGone,
        }
    }
}

impl From<&PlainError> for Refusal {
    fn from(error: &PlainError) -> Self {
        let refusal = Self::new(error.code(), error.to_string());
        match error {
            PlainError::Egress(error) => error.refusal(),
            PlainError::Body(source) => refusal.with_detail(source.to_string()),
            PlainError::Gone(source) => refusal.with_detail(source.to_string()),
            PlainError::SlowBody(_) | PlainError::Closed | PlainError::SlowReader(_) => refusal,
        }
    }
}
