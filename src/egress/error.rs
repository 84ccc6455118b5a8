//! Why a request did not leave, or its answer could not be used.

use std::{error::Error as _, fmt::Write as _, sync::Arc, time::Duration};

use super::{Destination, DialError, Fault, ResolveError, TlsError};
use crate::{
    address::Blocked,
    deadline::Deadline,
    refusal::{Code, Refusal},
};

/// A failure on the way out or on the way back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The destination is forbidden.
    #[error(transparent)]
    Blocked(#[from] Blocked),
    /// The name has no usable answer.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// No judged address accepted a connection.
    #[error("`{host}` could not be connected to")]
    Connect {
        /// The host.
        host: Arc<str>,
        /// What each address said.
        source: DialError,
    },
    /// The machine has no descriptor or memory for another connection, which says nothing about the host.
    #[error("no connection to `{host}` could be begun")]
    Exhausted {
        /// The host.
        host: Arc<str>,
        /// What each address said.
        source: DialError,
    },
    /// No judged address answered in time, or the handshake did not end in time.
    #[error("`{host}` did not accept a connection within {limit:?}")]
    ConnectTimeout {
        /// The host.
        host: Arc<str>,
        /// The bound that was reached.
        limit: Duration,
    },
    /// The connection cannot be trusted.
    #[error("no trusted connection to `{host}`: {}", source.summary())]
    Tls {
        /// The host.
        host: Arc<str>,
        /// What is wrong with it.
        source: TlsError,
    },
    /// The answer sends elsewhere.
    #[error("`{host}` answered {status} and points to {to}")]
    Redirect {
        /// The host.
        host: Arc<str>,
        /// The status, 300 to 399.
        status: u16,
        /// Scheme and host of the `Location`, or words where it names none.
        to: String,
        /// Whether that is the same path of the same host, but for the scheme, the port, or a slash at the end: the
        /// server has moved, whoever asks.
        moved: bool,
    },
    /// No answer began in time.
    #[error("`{host}` took the request and did not begin to answer within {limit:?}")]
    FirstByteTimeout {
        /// The host.
        host: Arc<str>,
        /// The bound that was reached.
        limit: Duration,
    },
    /// The answer stopped midway.
    #[error("`{host}` sent nothing for {limit:?} in the middle of its answer")]
    IdleTimeout {
        /// The host.
        host: Arc<str>,
        /// The bound that was reached.
        limit: Duration,
    },
    /// The whole call took too long.
    #[error("the call to `{host}` was not over at its deadline")]
    CallTimeout {
        /// The host.
        host: Arc<str>,
    },
    /// The head of the answer is malformed, or larger than its caps.
    #[error("`{host}` answered with a head that is malformed or too large")]
    ResponseHead {
        /// The host.
        host: Arc<str>,
        /// What is wrong with it.
        source: Fault,
    },
    /// The answer wants to change protocols, which was not asked for.
    #[error("`{host}` answered with a protocol upgrade that was not asked for")]
    Upgrade {
        /// The host.
        host: Arc<str>,
    },
    /// The answer is longer than the cap.
    #[error("the answer of `{host}` is longer than {limit} bytes")]
    TooLarge {
        /// The host.
        host: Arc<str>,
        /// The cap, in decoded bytes.
        limit: usize,
    },
    /// Nothing is left of the memory that all answers share.
    #[error("the call was made, but there is no room for the answer of `{host}`")]
    Overloaded {
        /// The host.
        host: Arc<str>,
    },
    /// The answer comes in a coding that is not decoded here.
    #[error("`{host}` answered in the coding `{coding}`, expected gzip, br, zstd or none")]
    Coding {
        /// The host.
        host: Arc<str>,
        /// What the header says, cut at 64 bytes.
        coding: String,
    },
    /// The answer is not what its coding says.
    #[error("the {coding} answer of `{host}` cannot be decoded")]
    Undecodable {
        /// The host.
        host: Arc<str>,
        /// The coding.
        coding: &'static str,
        /// What is wrong with it.
        source: std::io::Error,
    },
    /// The parent proxy could not be used.
    #[error("the parent proxy `{parent}` could not be used")]
    Parent {
        /// Its host and port.
        parent: Arc<str>,
        /// Why.
        source: Box<Self>,
    },
    /// The parent proxy opened no tunnel.
    #[error("the parent proxy `{parent}` answered {status} when it was asked for `{host}`")]
    ParentStatus {
        /// Its host and port.
        parent: Arc<str>,
        /// The host.
        host: Arc<str>,
        /// The status, not 2xx.
        status: u16,
    },
    /// The connection broke after the request was handed to it.
    #[error("the connection to `{host}` broke before its answer was complete")]
    Lost {
        /// The host.
        host: Arc<str>,
        /// What broke it.
        source: Fault,
    },
}

impl Error {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::Blocked(blocked) => blocked.code,
            Self::Resolve(error) => error.code(),
            Self::Connect { .. } => Code::ConnectFailed,
            Self::Exhausted { .. } => Code::Exhausted,
            Self::ConnectTimeout { .. } => Code::ConnectTimeout,
            Self::Tls { .. } => Code::UpstreamTls,
            Self::Redirect { .. } => Code::RedirectRefused,
            Self::FirstByteTimeout { .. } => Code::FirstByteTimeout,
            Self::IdleTimeout { .. } => Code::IdleTimeout,
            Self::CallTimeout { .. } => Code::CallTimeout,
            Self::ResponseHead { .. } | Self::Upgrade { .. } => Code::ResponseHeadInvalid,
            Self::TooLarge { .. } => Code::ResponseTooLarge,
            Self::Overloaded { .. } => Code::AnswersOverloaded,
            Self::Coding { .. } | Self::Undecodable { .. } => Code::ResponseEncoding,
            Self::Parent { source, .. } => match source.code() {
                told @ (Code::ConnectTimeout
                | Code::DnsTimeout
                | Code::FirstByteTimeout
                | Code::CallTimeout
                | Code::Exhausted) => told,
                _ => Code::ParentFailed,
            },
            Self::ParentStatus { .. } => Code::ParentFailed,
            Self::Lost { .. } => Code::ConnectionLost,
        }
    }

    /// No address accepted a connection within `limit`, or before the deadline.
    pub(super) fn unconnected(
        host: &Arc<str>,
        source: DialError,
        limit: Duration,
        deadline: Deadline,
    ) -> Self {
        match source {
            _ if source.is_exhaustion() => Self::Exhausted {
                host: host.clone(),
                source,
            },
            DialError::TimedOut { .. } => Self::connect_late(host, limit, deadline),
            DialError::Failed { .. } | DialError::Closed(_) => Self::Connect {
                host: host.clone(),
                source,
            },
        }
    }

    /// Connecting took longer than `limit`, or than the deadline lets it.
    pub(super) fn connect_late(host: &Arc<str>, limit: Duration, deadline: Deadline) -> Self {
        let host = host.clone();
        if deadline.passed() {
            Self::CallTimeout { host }
        } else {
            Self::ConnectTimeout { host, limit }
        }
    }

    /// An exchange that broke after its request was begun.
    pub(super) fn broken(host: &Arc<str>, source: Fault) -> Self {
        let host = host.clone();
        if source.is_head() {
            Self::ResponseHead { host, source }
        } else {
            Self::Lost { host, source }
        }
    }

    /// Whether it is about an answer of the server, which is in reach then.
    pub fn came_from_server(&self) -> bool {
        matches!(
            self,
            Self::Redirect { .. }
                | Self::ResponseHead { .. }
                | Self::Upgrade { .. }
                | Self::TooLarge { .. }
                | Self::Coding { .. }
        )
    }

    /// The refusal: words for the model, causes for the log.
    pub fn refusal(&self) -> Refusal {
        let refusal = Refusal::new(self.code(), self.to_string());
        let mut detail = String::new();
        let mut cause = self.source();
        while let Some(error) = cause {
            let separator = if detail.is_empty() { "" } else { ": " };
            write!(detail, "{separator}{error}").expect("a String takes all that is written to it");
            cause = error.source();
        }
        if detail.is_empty() {
            refusal
        } else {
            refusal.with_detail(detail)
        }
    }
}

/// A request that got no answer.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failed {
    /// Why.
    pub error: Error,
    /// True only when no byte of the request can have reached the peer.
    pub not_sent: bool,
    /// Where it was to go, once that was judged.
    pub destination: Option<Box<Destination>>,
}

impl Failed {
    /// One of which nothing was sent.
    pub(super) fn unsent(error: Error, destination: Option<Destination>) -> Self {
        Self {
            error,
            not_sent: true,
            destination: destination.map(Box::new),
        }
    }
}
