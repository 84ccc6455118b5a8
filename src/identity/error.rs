//! Why evidence was not enough.

use crate::refusal::{Code, Refusal};

/// Evidence that fails. No variant holds what was presented.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No `Authorization` header.
    #[error("the request carries no agent key")]
    Missing,
    /// `Authorization` stands twice.
    #[error("`Authorization` stands more than once")]
    Doubled,
    /// Another scheme, or text that is no key.
    #[error("`Authorization` holds no agent key of the form `Bearer tg_…`")]
    NotAKey,
    /// A key that the policy does not name.
    #[error("the agent key is not known")]
    Unknown,
    /// A credential where none is judged.
    #[error("this listener knows one local user and judges no `Authorization`")]
    NotJudged,
    /// A key past its `expires`.
    #[error("the agent key has expired")]
    Expired,
    /// A key without the scope.
    #[error("the agent key lacks the scope `{0}`")]
    Scope(&'static str),
    /// `Tollgate-User` or `Tollgate-Groups` without leave.
    #[error("{0}")]
    Acting(String),
    /// A `Tollgate-*` header that stands twice.
    #[error("`{0}` stands more than once")]
    HeaderDoubled(&'static str),
    /// A `Tollgate-*` header that is too long, empty or not visible ASCII.
    #[error("`{name}` must be 1 to {max} visible ASCII characters")]
    HeaderText {
        /// The header.
        name: &'static str,
        /// Its longest value, in bytes.
        max: usize,
    },
    /// More groups than are read.
    #[error("`Tollgate-Groups` names more than {0} groups")]
    TooManyGroups(usize),
}

impl Error {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::Missing => Code::EvidenceMissing,
            Self::Doubled | Self::NotAKey | Self::Unknown | Self::NotJudged => {
                Code::EvidenceInvalid
            }
            Self::Expired => Code::EvidenceExpired,
            Self::Scope(_) => Code::ScopeMissing,
            Self::Acting(_) => Code::ActingRefused,
            Self::HeaderDoubled(_) => Code::HeaderDuplicate,
            Self::HeaderText { .. } | Self::TooManyGroups(_) => Code::BadHead,
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
