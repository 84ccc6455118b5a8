//! Where links and sign-ins are kept: what a store does for browsers. It judges nothing; the marks are ours.

use std::{error, fmt, future::Future, pin::Pin};

use crate::{refusal::Code, subject::Owner};

/// What a store promises, once it can.
pub type Kept<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionsError>> + Send + 'a>>;

/// Keeps links and sign-ins. Every change is durable on return, and atomic against every other process of the same
/// database.
pub trait Sessions: Send + Sync + fmt::Debug {
    /// Keeps a link, and forgets those that had ended by `now`.
    fn put_link<'a>(&'a self, row: &'a LinkRow, now: i64) -> Kept<'a, ()>;

    /// The link with this digest.
    fn link<'a>(&'a self, digest: &'a [u8; 32]) -> Kept<'a, Option<LinkRow>>;

    /// Takes the link with this digest away and gives it back: of several who try, one gets it.
    fn take_link<'a>(&'a self, digest: &'a [u8; 32]) -> Kept<'a, Option<LinkRow>>;

    /// Keeps a new sign-in, and forgets those that had ended when it was made, and of its user those that were not seen
    /// for longest, so that 32 are left.
    fn put_session<'a>(&'a self, row: &'a SessionRow) -> Kept<'a, ()>;

    /// The sign-in with this digest.
    fn session<'a>(&'a self, digest: &'a [u8; 32]) -> Kept<'a, Option<SessionRow>>;

    /// Writes down that a sign-in was seen; false where it is no longer there.
    fn see_session<'a>(&'a self, row: &'a SessionRow) -> Kept<'a, bool>;

    /// Forgets a sign-in; false where it was not there.
    fn remove_session<'a>(&'a self, digest: &'a [u8; 32]) -> Kept<'a, bool>;

    /// The sign-ins of a user.
    fn sessions<'a>(&'a self, owner: &'a Owner) -> Kept<'a, Vec<SessionRow>>;
}

/// A link that can be used once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRow {
    /// SHA-256 of its token.
    pub digest: [u8; 32],
    /// Whom it signs in.
    pub owner: Owner,
    /// Until when, in Unix seconds.
    pub ends: i64,
    /// The mark over all of it.
    pub mac: [u8; 32],
}

/// A sign-in. Times are Unix seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// SHA-256 of its id.
    pub digest: [u8; 32],
    /// Whom it stands for.
    pub owner: Owner,
    /// When it was made.
    pub made: i64,
    /// When it was last used, to within five minutes.
    pub seen: i64,
    /// When it ends at the latest.
    pub ends: i64,
    /// The mark over all of it.
    pub mac: [u8; 32],
}

/// Why links and sign-ins cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SessionsError {
    /// The database does not work.
    #[error("the database does not work")]
    Unavailable(#[source] Box<dyn error::Error + Send + Sync>),
    /// They are not as this gateway wrote them.
    #[error("sign-ins were changed by something else than Tollgate")]
    Forged,
}

impl SessionsError {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::Unavailable(_) => Code::StoreUnavailable,
            Self::Forged => Code::RecordForged,
        }
    }
}
