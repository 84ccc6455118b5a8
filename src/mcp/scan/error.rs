//! What a scan refuses.

use crate::refusal::Code;

/// Why a document is refused; positions are byte offsets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// Not UTF-8.
    #[error("invalid UTF-8 at byte {at}")]
    Utf8 {
        /// Where.
        at: usize,
    },
    /// Something else than the grammar allows.
    #[error("expected {expected} at byte {at}")]
    Syntax {
        /// Where.
        at: usize,
        /// What may stand there.
        expected: &'static str,
    },
    /// More containers inside one another than the rules allow.
    #[error("nested deeper than {max} levels at byte {at}")]
    Depth {
        /// Where.
        at: usize,
        /// The bound.
        max: usize,
    },
    /// A key that its object holds already, once escapes are decoded.
    #[error("the key before byte {at} stands twice in its object")]
    DuplicateKey {
        /// Just after the second key.
        at: usize,
    },
    /// A key that parsers which ignore case take for a member that matters.
    #[error("the key before byte {at} differs from `{member}` only in case or invisibly")]
    Lookalike {
        /// Just after the key.
        at: usize,
        /// The member that it is not.
        member: &'static str,
    },
    /// An escape of half a surrogate pair.
    #[error("a lone surrogate in the string before byte {at}")]
    LoneSurrogate {
        /// Just after the string.
        at: usize,
    },
    /// An integer outside i64 and u64, or a number that is infinite as f64.
    #[error("the number at byte {at} is out of range")]
    NumberRange {
        /// Where.
        at: usize,
    },
}

impl ScanError {
    /// [`Code::ParseError`] where it is not JSON, else [`Code::Ambiguous`].
    pub fn code(&self) -> Code {
        match self {
            Self::Utf8 { .. } | Self::Syntax { .. } => Code::ParseError,
            Self::Depth { .. }
            | Self::DuplicateKey { .. }
            | Self::Lookalike { .. }
            | Self::LoneSurrogate { .. }
            | Self::NumberRange { .. } => Code::Ambiguous,
        }
    }
}
