//! Why there is no connection, or none to use.

use std::sync::Arc;

use crate::{
    egress,
    refusal::{Code, Refusal},
};

/// What a caller or a person is told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody connected this user yet.
    #[error("you are not connected to server `{server}`")]
    Required {
        /// The server.
        server: Arc<str>,
    },
    /// It was connected, and has to be again.
    #[error("your connection to server `{server}` has ended ({reason})")]
    Reconnect {
        /// The server.
        server: Arc<str>,
        /// Why, in a word of the table: `expired`, `revoked`, `rotation_lost`, `issuer_changed`, `client_changed`, `client_dead`, `origin_changed`, `refused`, `unreadable`.
        reason: &'static str,
    },
    /// The secret that the operator keeps for everybody in the vault cannot be used.
    #[error(
        "server `{server}` cannot be used: the secret that the operator keeps for it {}",
        wrong(reason)
    )]
    Shared {
        /// The server.
        server: Arc<str>,
        /// Why, in a word: `missing`, `refused`, `origin_changed`, `unreadable`.
        reason: &'static str,
    },
    /// The server wants more than was granted.
    #[error("server `{server}` wants more permissions: {}", scopes.join(" "))]
    MoreScopes {
        /// The server.
        server: Arc<str>,
        /// What it wants.
        scopes: Vec<String>,
    },
    /// The provider did not answer usefully; later it may.
    #[error("the authorization server of `{server}` does not answer usefully now: {what}")]
    Transient {
        /// The server.
        server: Arc<str>,
        /// What was tried, and what came.
        what: String,
    },
    /// Discovery found nothing that can be used.
    #[error("the authorization of server `{server}` cannot be used: {what}")]
    Unusable {
        /// The server.
        server: Arc<str>,
        /// What is wrong, and which setting would help.
        what: String,
    },
    /// The operator's secret is not one that the vault keeps.
    #[error("the vault keeps no such secret for server `{server}`: {what}")]
    NotKept {
        /// The server.
        server: Arc<str>,
        /// What is wrong, and which setting would help.
        what: String,
    },
    /// No client, and none can be registered.
    #[error("server `{server}` needs a client that the operator registers: {what}")]
    Client {
        /// The server.
        server: Arc<str>,
        /// Why.
        what: String,
    },
    /// Policy lets nothing be sent to a URL that was published or configured.
    #[error("{}", .0.public)]
    Refused(Refusal),
    /// The issuer is another than the one that was pinned.
    #[error("the authorization server of `{server}` has changed from `{pinned}` to `{found}`")]
    IssuerChanged {
        /// The server.
        server: Arc<str>,
        /// The pinned one.
        pinned: String,
        /// The one found now.
        found: String,
    },
    /// The metadata of an issuer names an endpoint at an origin by which another is known (mix-up).
    #[error(
        "the authorization server of `{server}`, `{issuer}`, names its {endpoint} at `{origin}`, where another authorization server is known to be"
    )]
    MixUp {
        /// The server.
        server: Arc<str>,
        /// Whose metadata it is.
        issuer: String,
        /// The member of the metadata.
        endpoint: &'static str,
        /// Where it lies.
        origin: String,
        /// By what the other is known there: which server's pin or file, or which preset. For the operator's eyes.
        by: String,
    },
    /// An answer to no flow of this browser: unknown, used, expired, foreign, doubled.
    #[error("this sign-in is not known here, has been used, or has expired")]
    State,
    /// Another browser, or another user, than the one that began.
    #[error("this sign-in was begun by another browser or another user")]
    Browser,
    /// `iss` is not the issuer that was asked.
    #[error("the answer came from another authorization server than the one that was asked")]
    IssuerMismatch,
    /// The provider refused, in its own words: shown to the person, never logged.
    #[error("the authorization server refused: {error}")]
    Denied {
        /// Its error code, cut and cleaned.
        error: String,
        /// What it says, cut and cleaned.
        description: Option<String>,
    },
    /// The way there, or back, failed.
    #[error("the authorization server of `{server}` cannot be reached")]
    Egress {
        /// The server.
        server: Arc<str>,
        /// Why.
        #[source]
        source: egress::Error,
    },
    /// A static secret that cannot stand in a header.
    #[error("this secret cannot be sent: expected 1 to 8192 visible ASCII characters")]
    Secret,
    /// The database does not work.
    #[error("connections cannot be read or written")]
    Records(#[from] super::RecordsError),
}

impl Error {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::Required { .. } => Code::ConnectRequired,
            Self::Reconnect { .. } => Code::ConnectAgain,
            Self::Shared { .. } => Code::ConnectShared,
            Self::MoreScopes { .. } => Code::ConnectScopes,
            Self::Transient { .. } => Code::ConnectTransient,
            Self::Unusable { .. } | Self::NotKept { .. } => Code::ConnectUnusable,
            Self::Client { .. } => Code::ConnectClient,
            Self::Refused(refusal) => refusal.code,
            Self::IssuerChanged { .. } => Code::ConnectIssuerChanged,
            Self::MixUp { .. } => Code::ConnectMixUp,
            Self::State => Code::ConnectState,
            Self::Browser => Code::ConnectBrowser,
            Self::IssuerMismatch => Code::ConnectIssuerMismatch,
            Self::Denied { .. } => Code::ConnectDenied,
            Self::Egress { source, .. } => source.code(),
            Self::Secret => Code::ConnectSecret,
            Self::Records(error) => error.code(),
        }
    }

    /// Whether the person's next step is the connect page of the server.
    pub fn wants_page(&self) -> bool {
        matches!(
            self,
            Self::Required { .. } | Self::Reconnect { .. } | Self::MoreScopes { .. }
        )
    }
}

/// What is wrong with the operator's secret.
fn wrong(reason: &str) -> &'static str {
    match reason {
        "missing" => "is not set",
        "refused" => "was refused by the server",
        "origin_changed" => "was set for another address of the server",
        _ => "cannot be read",
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
