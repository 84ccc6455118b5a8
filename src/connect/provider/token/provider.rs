//! A token endpoint as the `oauth2` crate asks it: over the judged way out, and answered in the one form.

use std::{future::Future, pin::Pin, time::Duration};

use bytes::Bytes;
use http::{
    Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use oauth2::{
    AccessToken, AsyncHttpClient, HttpRequest, HttpResponse, RefreshToken, Scope, TokenResponse,
    basic::BasicTokenType,
};
use serde::{Deserialize, Serialize};
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
}

impl<'c> AsyncHttpClient<'c> for Provider<'_> {
    type Error = Unanswered;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Unanswered>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.ask(request))
    }
}

impl Provider<'_> {
    async fn ask(&self, request: HttpRequest) -> Result<HttpResponse, Unanswered> {
        let (mut head, body) = request.into_parts();
        let mut fields = Vec::with_capacity(2);
        for name in [CONTENT_TYPE, AUTHORIZATION] {
            if let Some(value) = head.headers.remove(&name) {
                fields.push((name, value));
            }
        }
        let answer = self
            .way
            .post(self.url, &fields, Zeroizing::new(body))
            .await?;
        if is_transient(&answer) {
            return Err(Unanswered::Busy {
                status: answer.status,
                retry_after: retry_after(&answer),
            });
        }
        let form = canonical(answer.status, &media_type(&answer), &answer.body);
        wipe(answer.body);
        let (status, mut body) = match form {
            Ok(Canonical::Granted(body)) => (StatusCode::OK, body),
            Ok(Canonical::Refused(body)) => (StatusCode::BAD_REQUEST, Zeroizing::new(body)),
            Err(Unclear::Neither) => return Err(Unanswered::Neither(answer.status)),
            Err(Unclear::TokenType(kind)) => return Err(Unanswered::TokenType(kind)),
        };
        let mut response = Response::new(std::mem::take(&mut *body));
        *response.status_mut() = status;
        Ok(response)
    }
}

/// Wipes what nobody else holds.
fn wipe(bytes: Bytes) {
    if let Ok(mut bytes) = bytes.try_into_mut() {
        bytes.as_mut().zeroize();
    }
}

/// Tokens, in the one form.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Granted {
    pub(super) access_token: AccessToken,
    pub(super) token_type: BasicTokenType,
    pub(super) expires_in: Option<u64>,
    pub(super) refresh_token: Option<RefreshToken>,
    pub(super) refresh_expires_in: Option<u64>,
    pub(super) scopes: Option<Vec<Scope>>,
}

impl TokenResponse for Granted {
    type TokenType = BasicTokenType;

    fn access_token(&self) -> &AccessToken {
        &self.access_token
    }

    fn token_type(&self) -> &BasicTokenType {
        &self.token_type
    }

    fn expires_in(&self) -> Option<Duration> {
        self.expires_in.map(Duration::from_secs)
    }

    fn refresh_token(&self) -> Option<&RefreshToken> {
        self.refresh_token.as_ref()
    }

    fn scopes(&self) -> Option<&Vec<Scope>> {
        self.scopes.as_ref()
    }
}
