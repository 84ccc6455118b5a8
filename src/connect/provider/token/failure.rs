//! Why there are no tokens: by what the provider says, not by its status (RFC 6749, section 5.2).

use std::{fmt, time::Duration};

use oauth2::{RequestTokenError, basic::BasicErrorResponse};

use super::{Tokens, provider::Unanswered};
use crate::{connect::provider::fetch::Unfetched, egress};

/// Why there are no tokens.
#[derive(thiserror::Error)]
pub enum Failure {
    /// The provider refused, and will refuse again.
    #[error("the authorization server refused: {error}")]
    Terminal {
        /// Its error code, fit to be recorded.
        error: String,
        /// What it says, cut and cleaned: for the person, never for a log.
        description: Option<String>,
        /// The client is not known any more.
        client_dead: bool,
    },
    /// Nobody knows; the same may succeed later.
    #[error("{what}")]
    Transient {
        /// How long the provider wants to be left alone.
        retry_after: Option<Duration>,
        /// No byte of the request can have reached it.
        unsent: bool,
        /// It said something; without that, and unless nothing was sent, it may have taken the token.
        answered: bool,
        /// What came, in words for the log.
        what: String,
    },
    /// The endpoint was judged and is forbidden; nothing was sent.
    #[error("the token endpoint cannot be used")]
    Egress(#[source] egress::Error),
}

impl Failure {
    /// What was stored or configured as a URL is none.
    pub(super) fn no_url() -> Self {
        Self::unclear(
            true,
            false,
            "the token endpoint or the redirect URI is no URL".to_owned(),
        )
    }

    fn unclear(unsent: bool, answered: bool, what: String) -> Self {
        Self::Transient {
            retry_after: None,
            unsent,
            answered,
            what,
        }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unsent) = match self {
            Self::Terminal { .. } => ("Terminal", false),
            Self::Transient { unsent, .. } => ("Transient", *unsent),
            Self::Egress(error) => return out.debug_tuple("Egress").field(error).finish(),
        };
        out.debug_struct(name)
            .field("what", &self.to_string())
            .field("unsent", &unsent)
            .finish_non_exhaustive()
    }
}

/// A refusal in the provider's own words.
pub(super) struct Refused {
    error: String,
    description: Option<String>,
}

impl Refused {
    /// Whether a client that is registered as public has to show its secret all the same.
    pub(super) fn wants_secret(&self) -> bool {
        match self.error.as_str() {
            "invalid_client" => true,
            "invalid_request" | "unauthorized_client" => self.says("secret"),
            _ => false,
        }
    }

    /// Whether a refresh has to name its scopes.
    pub(super) fn wants_scopes(&self) -> bool {
        self.error == "invalid_scope" || self.says("aadsts90009")
    }

    /// A refused code: whatever the reason, it is spent.
    pub(super) fn of_code(self) -> Failure {
        match self.error.as_str() {
            "temporarily_unavailable" | "server_error" | "slow_down" => {
                Failure::unclear(false, true, self.words())
            }
            _ => self.terminal(),
        }
    }

    /// A refused refresh: final only where the provider says that of the token, the client or the resource. Every doubt
    /// keeps the token.
    pub(super) fn of_refresh(self) -> Failure {
        match self.error.as_str() {
            "invalid_grant"
            | "invalid_client"
            | "unauthorized_client"
            | "unsupported_grant_type"
            | "invalid_target"
            | "access_denied"
            | "interaction_required"
            | "consent_required"
            | "login_required"
            | "token_revoked"
            | "token_expired"
            | "incorrect_client_credentials" => self.terminal(),
            other if other.contains("refresh_token") => self.terminal(),
            _ => Failure::unclear(false, true, self.words()),
        }
    }

    fn terminal(self) -> Failure {
        let client_dead = matches!(
            self.error.as_str(),
            "invalid_client" | "incorrect_client_credentials"
        );
        Failure::Terminal {
            error: self.error,
            description: self.description,
            client_dead,
        }
    }

    fn words(&self) -> String {
        format!(
            "the token endpoint answered with the error `{}`",
            self.error
        )
    }

    fn says(&self, word: &str) -> bool {
        let description = self.description.as_deref().unwrap_or_default();
        description.to_ascii_lowercase().contains(word)
    }
}

/// Tells a refusal from a failure.
pub(super) fn sorted(
    answer: Result<Tokens, RequestTokenError<Unanswered, BasicErrorResponse>>,
) -> Result<Result<Tokens, Refused>, Failure> {
    match answer {
        Ok(tokens) => Ok(Ok(tokens)),
        Err(RequestTokenError::ServerResponse(said)) => Ok(Err(Refused {
            error: said.error().as_ref().to_owned(),
            description: said.error_description().cloned(),
        })),
        Err(RequestTokenError::Request(unanswered)) => Err(failure(unanswered)),
        // Neither is shown: both may hold the answer.
        Err(RequestTokenError::Parse(..) | RequestTokenError::Other(_)) => Err(Failure::unclear(
            false,
            false,
            "the answer of the token endpoint was not understood".to_owned(),
        )),
    }
}

fn failure(unanswered: Unanswered) -> Failure {
    match unanswered {
        Unanswered::Unfetched(Unfetched::Failed(failed)) => match failed.error {
            error @ egress::Error::Blocked(_) => Failure::Egress(error),
            error => Failure::unclear(failed.not_sent, false, error.to_string()),
        },
        Unanswered::Unfetched(forbidden) => Failure::unclear(true, false, forbidden.to_string()),
        Unanswered::TokenType(kind) => Failure::Terminal {
            error: "unsupported_token_type".to_owned(),
            description: Some(format!(
                "its tokens are of the kind `{kind}`, expected `Bearer`"
            )),
            client_dead: false,
        },
        Unanswered::Busy { retry_after, .. } => Failure::Transient {
            retry_after,
            unsent: false,
            answered: true,
            what: unanswered.to_string(),
        },
        Unanswered::Neither(_) => Failure::unclear(false, true, unanswered.to_string()),
    }
}
