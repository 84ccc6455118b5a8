//! Why a job came to nothing, before the room that asked says it in its own words.

use rusqlite::ffi;

use super::Unavailable;

/// Why rows were not read or written.
#[derive(Debug)]
pub(super) enum Failure {
    /// They are not as this gateway wrote them.
    Forged,
    /// The database cannot be used.
    Unavailable(Unavailable),
}

impl From<Unavailable> for Failure {
    fn from(why: Unavailable) -> Self {
        Self::Unavailable(why)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as E;
        match error {
            // Columns and tables that are not those that were made: the statements themselves are right.
            E::SqliteFailure(error, _) if error.extended_code == ffi::SQLITE_ERROR => Self::Forged,
            E::SqlInputError { .. }
            | E::InvalidColumnType(..)
            | E::FromSqlConversionFailure(..)
            | E::IntegralValueOutOfRange(..)
            | E::Utf8Error(..) => Self::Forged,
            error => Self::Unavailable(Unavailable::Sqlite(error)),
        }
    }
}
