//! `[auth]` of a server's file: what is sent upstream, and where it comes from.

use std::sync::Arc;

use http::HeaderName;

use crate::secret::Secret;

/// `mode`: what is sent upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    /// Nothing.
    #[default]
    None,
    /// A bearer token that each user enters.
    Bearer,
    /// The value of this header, which each user enters.
    Header(HeaderName),
    /// A token of each user's own connection.
    OAuth(Box<OAuth>),
    /// One secret for all callers, which the operator keeps.
    Shared(Shared),
}

impl Auth {
    /// The word that a file writes.
    pub fn mode(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bearer => "bearer",
            Self::Header(_) => "header",
            Self::OAuth(_) => "oauth",
            Self::Shared(_) => "shared",
        }
    }

    /// The header that a static secret stands in; `None` is `Authorization: Bearer`, or no static secret.
    pub fn header(&self) -> Option<&HeaderName> {
        match self {
            Self::Header(name) => Some(name),
            Self::Shared(shared) => shared.header.as_ref(),
            Self::None | Self::Bearer | Self::OAuth(_) => None,
        }
    }

    /// Whether each user has a credential of their own, so that nobody but a user can ask the server anything.
    pub fn is_personal(&self) -> bool {
        match self {
            Self::Bearer | Self::Header(_) | Self::OAuth(_) => true,
            Self::None | Self::Shared(_) => false,
        }
    }

    /// Whether the operator keeps the secret for everybody in the vault.
    pub fn is_in_vault(&self) -> bool {
        matches!(self, Self::Shared(shared) if shared.secret.is_none())
    }

    /// The knobs of `mode = "oauth"`.
    pub fn oauth(&self) -> Option<&OAuth> {
        match self {
            Self::OAuth(knobs) => Some(knobs),
            Self::None | Self::Bearer | Self::Header(_) | Self::Shared(_) => None,
        }
    }
}

/// `mode = "shared"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// The header; absent is `Authorization: Bearer`.
    pub header: Option<HeaderName>,
    /// `secret`; absent, it is kept in the vault (`tollgate secret set`).
    pub secret: Option<Arc<Secret>>,
}

/// `mode = "oauth"`, with the operator's knobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuth {
    /// `client_id` and `client_secret`; `issuer` is there then.
    pub client: Option<PreRegistered>,
    /// `issuer`.
    pub issuer: Option<Arc<str>>,
    /// `registration`.
    pub registration: Registration,
    /// `trusted_issuer`: what the document may say instead of the issuer it was asked for.
    pub trusted_issuer: Option<Arc<str>>,
    /// `metadata_url`: where the authorization server's metadata is.
    pub metadata_url: Option<Arc<str>>,
    /// `endpoints`: in place of discovery.
    pub endpoints: Option<Endpoints>,
    /// `pkce`.
    pub pkce: Pkce,
    /// `resource`.
    pub resource: Resource,
    /// `scopes`: what is asked for, in place of what challenge and metadata say.
    pub scopes: Option<Vec<Arc<str>>>,
    /// `scopes_max`: what may be asked for at most.
    pub scopes_max: Option<Vec<Arc<str>>>,
    /// `on_issuer_change`.
    pub on_issuer_change: OnIssuerChange,
    /// `refresh_scope = "send"`.
    pub refresh_scope: bool,
    /// `token_auth_method`.
    pub token_auth: Option<TokenAuth>,
    /// `extra_authorize_params`.
    pub extra_authorize_params: Vec<(Arc<str>, Arc<str>)>,
    /// `revoke = "off"` is false.
    pub revoke: bool,
    /// `allow_http_loopback`.
    pub allow_http_loopback: bool,
    /// The presets that were laid under the file's own words, by name; see [`OAuth::with_presets`].
    pub presets: Vec<&'static str>,
    /// The keys that the file writes: no preset changes what they say.
    pub written: Vec<&'static str>,
}

impl Default for OAuth {
    fn default() -> Self {
        Self {
            client: None,
            issuer: None,
            registration: Registration::default(),
            trusted_issuer: None,
            metadata_url: None,
            endpoints: None,
            pkce: Pkce::default(),
            resource: Resource::default(),
            scopes: None,
            scopes_max: None,
            on_issuer_change: OnIssuerChange::default(),
            refresh_scope: false,
            token_auth: None,
            extra_authorize_params: Vec::new(),
            revoke: true,
            allow_http_loopback: false,
            presets: Vec::new(),
            written: Vec::new(),
        }
    }
}

/// A client that the operator registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreRegistered {
    /// `client_id`.
    pub id: Arc<str>,
    /// `client_secret`.
    pub secret: Option<Arc<Secret>>,
}

/// `registration`: how a client comes about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registration {
    /// Pre-registered, else a client id metadata document, else dynamic.
    #[default]
    Auto,
    /// A client id metadata document.
    Cimd,
    /// Dynamic (RFC 7591).
    Dcr,
    /// The operator's.
    PreRegistered,
}

/// `endpoints`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// `authorization`.
    pub authorization: Arc<str>,
    /// `token`.
    pub token: Arc<str>,
    /// `revocation`.
    pub revocation: Option<Arc<str>>,
    /// `registration`.
    pub registration: Option<Arc<str>>,
}

/// `pkce`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pkce {
    /// Refuse a server that does not say it knows S256.
    #[default]
    Strict,
    /// Take its silence for S256.
    AssumeS256,
}

/// `resource`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Resource {
    /// As published, byte for byte.
    #[default]
    Auto,
    /// Left out.
    Omit,
    /// Exactly this.
    Exactly(Arc<str>),
}

/// `on_issuer_change`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnIssuerChange {
    /// Refuse until somebody confirms it on the confirm page.
    #[default]
    Ask,
    /// Take it over, and ask people to connect again.
    Follow,
}

/// How a client authenticates at the token endpoint (RFC 7591, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenAuth {
    /// `none`.
    None,
    /// `client_secret_basic`.
    Basic,
    /// `client_secret_post`.
    Post,
}
