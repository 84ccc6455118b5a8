//! What is wrong with a head.

use super::{MAX_FIELDS, MAX_HEAD, MAX_LINE};
use crate::{
    address::{Host, Malformed},
    refusal::{Code, Refusal},
};

/// A head that is refused. No variant holds what a field said.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// TLS in the place of a head.
    #[error("TLS was spoken where a request head belongs; write the proxy's URL with `http://`")]
    Tls,
    /// A line that ends in a bare LF.
    #[error("a line of the request head does not end in CRLF")]
    LineEnd,
    /// An empty line before the request line.
    #[error("an empty line stands before the request line")]
    EmptyLine,
    /// A field that goes on in the next line (obs-fold).
    #[error("a header field is folded over several lines")]
    Folded,
    /// A line that is no field.
    #[error("a header line has no colon")]
    NoColon,
    /// Whitespace before the colon.
    #[error("whitespace stands between a header's name and its colon")]
    SpacedColon,
    /// A control character in a field, a bare CR among them.
    #[error("a header field contains a control character")]
    Control,
    /// What else the grammar does not allow.
    #[error("the request head is malformed")]
    Malformed(#[from] httparse::Error),
    /// A request line that is too long.
    #[error("the request line is longer than {MAX_LINE} bytes")]
    LongLine,
    /// A head that is too long.
    #[error("the request head is longer than {MAX_HEAD} bytes")]
    LongHead,
    /// Too many fields.
    #[error("the request head has more than {MAX_FIELDS} header fields")]
    ManyFields,
    /// A method that is not forwarded.
    #[error("`TRACE` is not forwarded")]
    Method,
    /// A request for the proxy itself (origin-form or asterisk-form).
    #[error("this is a forward proxy and serves no paths of its own")]
    OriginForm,
    /// A target that is no destination.
    #[error(transparent)]
    Target(#[from] Malformed),
    /// An https URL outside a tunnel.
    #[error("an https URL was asked for without a tunnel; send `CONNECT {0}:443` first")]
    Https(Host),
    /// HTTP/1.1 without `Host`.
    #[error("the request has no `Host`")]
    NoHost,
    /// `Host` names another destination.
    #[error("`Host` does not name the target, `{0}`")]
    HostMismatch(String),
    /// A field that may stand once.
    #[error("`{0}` stands more than once")]
    Doubled(&'static str),
    /// Readers could disagree about where the body ends.
    #[error("the end of the body is not clear: {0}")]
    Framing(&'static str),
    /// `Connection` holds something that is no name of a field, or names one that must arrive.
    #[error("`Connection` names a field that must not be removed, or none at all")]
    Connection,
}

impl HeadError {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::LongHead | Self::ManyFields => Code::HeadTooLarge,
            Self::LongLine => Code::TargetTooLong,
            Self::Method => Code::MethodRefused,
            Self::OriginForm | Self::Target(_) | Self::Https(_) => Code::ProxyTarget,
            Self::NoHost | Self::HostMismatch(_) => Code::HostMismatch,
            _ => Code::BadHead,
        }
    }
}

impl From<HeadError> for Refusal {
    fn from(error: HeadError) -> Self {
        let refusal = Self::new(error.code(), error.to_string());
        match error {
            HeadError::Malformed(source) => refusal.with_detail(source.to_string()),
            _ => refusal,
        }
    }
}
