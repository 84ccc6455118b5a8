//! What can go wrong with a tool server that was reached.

use std::{sync::Arc, time::Duration};

use crate::{
    egress::{self, Destination},
    mcp::Revision,
    refusal::{Code, Refusal},
};

/// A request to a tool server that brought no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The way there, or back, failed.
    #[error("the request to server `{server}` failed")]
    Egress {
        /// The server.
        server: Arc<str>,
        /// Why.
        #[source]
        source: egress::Error,
        /// Where it was to go, once that was judged.
        destination: Option<Box<Destination>>,
    },
    /// An HTTP status that carries no MCP answer.
    #[error("server `{server}` answered with HTTP status {status}")]
    Status {
        /// The server.
        server: Arc<str>,
        /// The status.
        status: u16,
    },
    /// 401 or 403.
    #[error("server `{server}` answered with HTTP status {status}: it wants credentials")]
    Unauthorized {
        /// The server.
        server: Arc<str>,
        /// The status.
        status: u16,
    },
    /// There is nothing to show the server whose request it is, or the server does not take it.
    #[error("{}", .0.public)]
    Credential(Refusal),
    /// Neither JSON nor an event stream.
    #[error("server `{server}` answered with `{found}`, expected JSON or an event stream")]
    ContentType {
        /// The server.
        server: Arc<str>,
        /// What it sent, cut.
        found: String,
    },
    /// Bytes that are no MCP message.
    #[error("server `{server}` sent what is no valid MCP message: {reason}")]
    Malformed {
        /// The server.
        server: Arc<str>,
        /// What is wrong with it.
        reason: String,
    },
    /// A response to something else.
    #[error("server `{server}` answered a request that was not asked")]
    WrongId {
        /// The server.
        server: Arc<str>,
    },
    /// Something after the answer.
    #[error("server `{server}` went on after its answer")]
    ExtraAnswer {
        /// The server.
        server: Arc<str>,
    },
    /// A stream that ended too soon.
    #[error("server `{server}` ended its stream without an answer")]
    NoAnswer {
        /// The server.
        server: Arc<str>,
    },
    /// An event over the cap.
    #[error("server `{server}` sent an event of more than {cap} bytes")]
    EventTooLarge {
        /// The server.
        server: Arc<str>,
        /// The cap, in bytes.
        cap: usize,
    },
    /// The session cannot be renewed.
    #[error("server `{server}` ended the session and did not open another")]
    SessionLost {
        /// The server.
        server: Arc<str>,
    },
    /// It speaks another protocol version than the caller.
    #[error("server `{server}` does not speak protocol version {wanted} here; it speaks {spoken}")]
    Era {
        /// The server.
        server: Arc<str>,
        /// What the caller speaks.
        wanted: Revision,
        /// What the server speaks.
        spoken: String,
    },
    /// It was out of reach lately, and is not asked for a while.
    #[error(
        "server `{server}` has been failing for {} and is not asked; the next try {}",
        words(*since),
        next_try(*retry)
    )]
    Failing {
        /// The server.
        server: Arc<str>,
        /// How long it has been failing.
        since: Duration,
        /// How long until the next try.
        retry: Duration,
    },
    /// The caller wants no answer any more.
    #[error("stopped at the client's request")]
    Stopped,
}

impl Error {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::Egress { source, .. } => source.code(),
            Self::Status { .. } => Code::UpstreamStatus,
            Self::Unauthorized { .. } => Code::UpstreamUnauthorized,
            Self::Credential(refusal) => refusal.code,
            Self::ContentType { .. } => Code::UpstreamContentType,
            Self::Malformed { .. } => Code::UpstreamMalformed,
            Self::WrongId { .. } => Code::UpstreamWrongId,
            Self::ExtraAnswer { .. } => Code::UpstreamExtraAnswer,
            Self::NoAnswer { .. } => Code::UpstreamNoAnswer,
            Self::EventTooLarge { .. } => Code::UpstreamEventTooLarge,
            Self::SessionLost { .. } => Code::UpstreamSessionLost,
            // A modern client falls back to `initialize` on any error but the modern ones (MCP 2026-07-28, compatibility).
            Self::Era { wanted, .. } if *wanted == Revision::MODERN => Code::UpstreamSessionsOnly,
            Self::Era { spoken, .. } if spoken == Revision::MODERN.as_str() => Code::UpstreamEra,
            Self::Era { .. } => Code::UpstreamRevision,
            Self::Failing { .. } => Code::ServerFailing,
            Self::Stopped => Code::Cancelled,
        }
    }

    /// What the caller is told.
    pub fn refusal(&self) -> Refusal {
        match self {
            Self::Egress { server, source, .. } => {
                let told = source.refusal();
                Refusal {
                    public: format!("server `{server}`: {}", told.public),
                    ..told
                }
            }
            Self::Credential(refusal) => refusal.clone(),
            _ => Refusal::new(self.code(), self.to_string()),
        }
    }
}

fn next_try(retry: Duration) -> String {
    if retry.is_zero() {
        "is being made".to_owned()
    } else {
        format!("is made in {}", words(retry))
    }
}

/// A span in words: whole seconds, one at least.
fn words(span: Duration) -> String {
    match span.as_secs().max(1) {
        1 => "a second".to_owned(),
        seconds @ 2..120 => format!("{seconds} seconds"),
        seconds => format!("{} minutes", seconds / 60),
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        error.refusal()
    }
}
