//! Why a browser is not signed in.

use std::sync::Arc;

use super::SessionsError;
use crate::refusal::{Code, Refusal};

/// A sign-in that is not there or cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// With agent keys there are many users.
    #[error("nobody is named, expected the user whom the link signs in; name one with --user")]
    UserMissing,
    /// Nobody of this name, where everybody is the local user.
    #[error(
        "user `{user}` of tenant `{tenant}` is not known, expected the local user; leave --user and --tenant out"
    )]
    NotLocal {
        /// The tenant.
        tenant: Arc<str>,
        /// The user.
        user: Arc<str>,
    },
    /// Nobody of this name, where agent keys tell who there is.
    #[error(
        "user `{user}` of {} is not known, expected one that a key in keys.toml names or may act for; name one of those",
        listed(tenants)
    )]
    UserUnknown {
        /// The tenants looked in: that of the request, or all.
        tenants: Vec<Arc<str>>,
        /// The user.
        user: Arc<str>,
    },
    /// Several users of this name.
    #[error(
        "there is a user `{user}` of {}, expected one of them; name it with --tenant",
        listed(tenants)
    )]
    TenantMissing {
        /// The tenants.
        tenants: Vec<Arc<str>>,
        /// The user.
        user: Arc<str>,
    },
    /// A link that signs nobody in.
    #[error("this link has been used, has expired, or is not complete")]
    Link,
    /// No cookie, or one that stands for nobody any more.
    #[error("this browser is not signed in")]
    SignedOut,
    /// A row that is not as it was written.
    #[error("what is kept of this sign-in was changed by something else than Tollgate")]
    Forged,
    /// The database does not work.
    #[error("sign-ins cannot be read or written")]
    Rows(#[from] SessionsError),
}

impl LoginError {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::UserMissing
            | Self::NotLocal { .. }
            | Self::UserUnknown { .. }
            | Self::TenantMissing { .. } => Code::LoginUser,
            Self::Link => Code::LoginLink,
            Self::SignedOut => Code::SignedOut,
            Self::Forged => Code::RecordForged,
            Self::Rows(error) => error.code(),
        }
    }
}

impl From<LoginError> for Refusal {
    fn from(error: LoginError) -> Self {
        let refusal = Self::new(error.code(), error.to_string());
        match &error {
            LoginError::Rows(SessionsError::Unavailable(why)) => {
                refusal.with_detail(why.to_string())
            }
            _ => refusal,
        }
    }
}

fn listed(tenants: &[Arc<str>]) -> String {
    match tenants {
        [] => "any tenant".to_owned(),
        [one] => format!("tenant `{one}`"),
        several => format!("the tenants `{}`", several.join("`, `")),
    }
}
