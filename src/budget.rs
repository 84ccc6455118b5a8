//! Owns: how much of what servers say reaches a caller: results are cut, hidden characters shown, turns counted, the rest kept for a while.
//! Imports: layers 0–1.
//! Never: turns a result into values, or holds one for longer than ten minutes.
//! Fails as: [`Error`].

pub mod hidden;
mod kept;
pub mod meta;
mod piece;
mod shape;
mod strings;
mod trim;
mod turns;
mod written;

pub use kept::{Held, Kept, LIFE, Origin};
pub use piece::{Piece, piece};
pub use shape::Form;
pub use strings::{TooLong, bounded};
pub use trim::{Cut, Reader, Terms, Why, trim};
pub use turns::Turns;

use crate::refusal::{Code, Refusal};

/// What all workers share.
#[derive(Debug, Default)]
pub struct Budget {
    /// Results that can be read on.
    pub kept: Kept,
    /// What turns have come to.
    pub turns: Turns,
}

/// `text` without anything hidden in it, in at most `max` bytes if it was: made visible, or removed where that is too long.
pub fn clean(text: &str, max: usize) -> String {
    hidden::reveal(text, max).unwrap_or_else(|| hidden::remove(text))
}

/// The same, which takes a copy only of what hides something.
pub fn cleaned(text: String, max: usize) -> String {
    match hidden::find(&text, 0) {
        None => text,
        Some(_) => clean(&text, max),
    }
}

/// Why there is nothing to read on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Never given, given to somebody else, or given too long ago.
    #[error("no result of yours is kept under this handle; they are kept for 10 minutes")]
    HandleUnknown,
}

impl Error {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::HandleUnknown => Code::HandleUnknown,
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::subject::{Scopes, Subject};

    pub(super) fn subject(user: &str) -> Subject {
        Subject {
            tenant: "default".into(),
            agent: "agent".into(),
            user: user.into(),
            groups: Arc::from([]),
            scopes: Scopes::CALL,
            conversation: None,
            turn: None,
            acting: None,
            evidence: "key".into(),
        }
    }
}
