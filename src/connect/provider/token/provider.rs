//! A token endpoint: asked over the judged way out, and answered in the one form.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use oauth2::{AccessToken, RefreshToken, Scope, basic::BasicErrorResponse};
use serde::Deserialize;
use zeroize::{Zeroize as _, Zeroizing};

use super::answer::{Canonical, Unclear, canonical};
use crate::connect::provider::fetch::{Unfetched, Way, is_transient, media_type, retry_after};

/// One token endpoint; its URL stands as it was published.
pub(super) struct Provider<'a> {
    pub(super) way: Way<'a>,
    pub(super) url: &'a str,
}

/// Why there are neither tokens nor a refusal.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    /// Nothing came.
    #[error(transparent)]
    Unfetched(#[from] Unfetched),
    /// It does not answer now.
    #[error("the token endpoint answered {status}")]
    Busy {
        /// Its status.
        status: StatusCode,
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// What came says nothing.
    #[error("the token endpoint answered {0} with neither tokens nor an error")]
    Neither(StatusCode),
    /// The tokens need a proof that is not made here.
    #[error("its tokens are of the kind `{0}`, expected `Bearer`")]
    TokenType(String),
    /// Nobody can make anything of it.
    #[error("the answer of the token endpoint was not understood")]
    NotUnderstood,
}

/// What a token endpoint said.
pub(super) enum Answer {
    Granted(Granted),
    Refused(BasicErrorResponse),
}

impl Provider<'_> {
    /// Sends a form.
    pub(super) async fn ask(
        &self,
        fields: &[(HeaderName, HeaderValue)],
        body: Zeroizing<Vec<u8>>,
    ) -> Result<Answer, Unanswered> {
        let answer = self.way.post(self.url, fields, body).await?;
        if is_transient(&answer) {
            return Err(Unanswered::Busy {
                status: answer.status,
                retry_after: retry_after(&answer),
            });
        }
        let form = canonical(answer.status, &media_type(&answer), &answer.body);
        wipe(answer.body);
        let read = match form {
            Ok(Canonical::Granted(body)) => serde_json::from_slice(&body).map(Answer::Granted),
            Ok(Canonical::Refused(body)) => serde_json::from_slice(&body).map(Answer::Refused),
            Err(Unclear::Neither) => return Err(Unanswered::Neither(answer.status)),
            Err(Unclear::TokenType(kind)) => return Err(Unanswered::TokenType(kind)),
        };
        // The error may hold a part of the answer, and is not shown.
        read.map_err(|_| Unanswered::NotUnderstood)
    }
}

/// Wipes what nobody else holds.
fn wipe(bytes: Bytes) {
    if let Ok(mut bytes) = bytes.try_into_mut() {
        bytes.as_mut().zeroize();
    }
}

/// Tokens, in the one form.
#[derive(Deserialize)]
pub(super) struct Granted {
    pub(super) access_token: AccessToken,
    pub(super) expires_in: Option<u64>,
    pub(super) refresh_token: Option<RefreshToken>,
    pub(super) refresh_expires_in: Option<u64>,
    pub(super) scopes: Option<Vec<Scope>>,
}
