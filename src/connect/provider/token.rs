//! Tokens: a code exchanged, an access token refreshed (RFC 6749, sections 4.1.3 and 6; RFC 8707 for `resource`).
//!
//! The `oauth2` crate builds the requests and parses the answers, which are brought into one form before it sees them. Its
//! own copies of a form and of an answer are freed without being wiped.

mod answer;
mod failure;
mod provider;

use std::{borrow::Cow, fmt};

use oauth2::{
    AuthType, AuthorizationCode, ClientId, ClientSecret, PkceCodeVerifier, RedirectUrl,
    RefreshToken, Scope, StandardRevocableToken, TokenUrl,
    basic::{BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse},
};
use zeroize::Zeroizing;

pub use self::failure::Failure;
use self::{
    failure::Refused,
    provider::{Granted, Provider},
};
use super::{discovery::Discovered, fetch::Way, issuer, register::Client};
use crate::{
    deadline::Deadline,
    egress::Egress,
    policy::{Permit, TokenAuth},
};

/// What a provider gave. It shows nothing of itself.
#[derive(PartialEq, Eq)]
pub struct Tokens {
    /// The access token.
    pub access: Zeroizing<String>,
    /// The refresh token; absent in the answer to a refresh means that the old one stays.
    pub refresh: Option<Zeroizing<String>>,
    /// Seconds that the access token lasts, a year at most; `None` where nobody said, which is no bound.
    pub expires_in: Option<u64>,
    /// Seconds that the refresh token lasts.
    pub refresh_expires_in: Option<u64>,
    /// What was granted; `None` is what was asked for.
    pub scopes: Option<Vec<String>>,
}

/// A code to exchange.
#[derive(Clone, Copy)]
pub struct Code<'a> {
    /// The code.
    pub code: &'a str,
    /// The verifier of its flow (RFC 7636).
    pub verifier: &'a str,
    /// The redirect URI that the flow was begun with.
    pub redirect_uri: &'a str,
    /// The resource that was asked for, as it was sent then.
    pub resource: Option<&'a str>,
}

/// A refresh token to use.
#[derive(Clone, Copy)]
pub struct Refresh<'a> {
    /// The refresh token.
    pub token: &'a str,
    /// The scopes that were asked for; sent only where the operator or the provider wants that.
    pub scopes: Option<&'a [String]>,
    /// The resource that was asked for at the authorization, as it was sent then.
    pub resource: Option<&'a str>,
}

/// Exchanges a code.
///
/// # Errors
///
/// [`Failure::Terminal`] for every refusal; the code is spent.
pub async fn exchange(
    egress: &Egress,
    permit: &Permit,
    client: &Client,
    discovered: &Discovered,
    code: Code<'_>,
    deadline: Deadline,
) -> Result<Tokens, Failure> {
    let way = Way {
        egress,
        permit,
        deadline,
    };
    let endpoint = Endpoint::new(way, &discovered.token_endpoint, client);
    let answer = endpoint.grant(Grant::Code(code)).await?;
    answer.map_err(Refused::of_code)
}

/// Refreshes an access token.
///
/// # Errors
///
/// [`Failure::Terminal`] where the refresh token is of no use any more; every doubt is [`Failure::Transient`].
pub async fn refresh(
    egress: &Egress,
    permit: &Permit,
    client: &Client,
    token_endpoint: &str,
    refresh: Refresh<'_>,
    deadline: Deadline,
) -> Result<Tokens, Failure> {
    let way = Way {
        egress,
        permit,
        deadline,
    };
    let endpoint = Endpoint::new(way, token_endpoint, client);
    let scopes = refresh.scopes.filter(|scopes| !scopes.is_empty());
    let first = scopes.filter(|_| sends_scopes(permit, token_endpoint));
    let grant = |scopes| Grant::Refresh { refresh, scopes };
    let mut answer = endpoint.grant(grant(first)).await?;
    let wants_scopes = matches!(&answer, Err(refused) if refused.wants_scopes());
    if wants_scopes && first.is_none() && scopes.is_some() {
        answer = endpoint.grant(grant(scopes)).await?;
    }
    answer.map_err(Refused::of_refresh)
}

/// Whether the operator, or a preset, has scopes sent with every refresh.
fn sends_scopes(permit: &Permit, token_endpoint: &str) -> bool {
    let knobs = permit.server().auth.oauth();
    let host = issuer::host(token_endpoint).unwrap_or_default();
    knobs.is_some_and(|knobs| knobs.with_presets(&host).refresh_scope)
}

#[derive(Clone, Copy)]
enum Grant<'a> {
    Code(Code<'a>),
    Refresh {
        refresh: Refresh<'a>,
        scopes: Option<&'a [String]>,
    },
}

/// A token endpoint, and who asks it.
struct Endpoint<'a> {
    provider: Provider<'a>,
    client: &'a Client,
}

impl<'a> Endpoint<'a> {
    fn new(way: Way<'a>, url: &'a str, client: &'a Client) -> Self {
        let provider = Provider { way, url };
        Self { provider, client }
    }

    /// Asks as the client was registered. Some providers register a public client, give it a secret, and want to see it:
    /// a refusal for the want of it is answered once.
    async fn grant(&self, grant: Grant<'_>) -> Result<Result<Tokens, Refused>, Failure> {
        let auth = self.client.auth;
        let answer = self.ask(grant, auth).await?;
        let wants_secret = matches!(&answer, Err(refused) if refused.wants_secret());
        if wants_secret && auth == TokenAuth::None && self.client.secret.is_some() {
            return self.ask(grant, TokenAuth::Post).await;
        }
        Ok(answer)
    }

    async fn ask(
        &self,
        grant: Grant<'_>,
        auth: TokenAuth,
    ) -> Result<Result<Tokens, Refused>, Failure> {
        let url = TokenUrl::new(self.provider.url.to_owned()).map_err(|_| Failure::no_url())?;
        let mut client = oauth2::Client::<
            BasicErrorResponse,
            Granted,
            BasicTokenIntrospectionResponse,
            StandardRevocableToken,
            BasicRevocationErrorResponse,
        >::new(ClientId::new(self.client.id.clone()))
        .set_auth_type(match auth {
            TokenAuth::Basic => AuthType::BasicAuth,
            TokenAuth::Post | TokenAuth::None => AuthType::RequestBody,
        })
        .set_token_uri(url);
        if let Some(secret) = &self.client.secret
            && auth != TokenAuth::None
        {
            client = client.set_client_secret(ClientSecret::new(secret.to_string()));
        }
        let answer = match grant {
            Grant::Code(code) => {
                let redirect = RedirectUrl::new(code.redirect_uri.to_owned())
                    .map_err(|_| Failure::no_url())?;
                let mut request = client
                    .exchange_code(AuthorizationCode::new(code.code.to_owned()))
                    .set_pkce_verifier(PkceCodeVerifier::new(code.verifier.to_owned()))
                    .set_redirect_uri(Cow::Owned(redirect));
                if let Some(resource) = code.resource {
                    request = request.add_extra_param("resource", resource);
                }
                request.request_async(&self.provider).await
            }
            Grant::Refresh { refresh, scopes } => {
                let token = RefreshToken::new(refresh.token.to_owned());
                let scopes = scopes.unwrap_or_default().iter().cloned().map(Scope::new);
                let mut request = client.exchange_refresh_token(&token).add_scopes(scopes);
                if let Some(resource) = refresh.resource {
                    request = request.add_extra_param("resource", resource);
                }
                let answer = request.request_async(&self.provider).await;
                drop(Zeroizing::new(token.into_secret()));
                answer
            }
        };
        failure::sorted(answer.map(Tokens::from))
    }
}

impl From<Granted> for Tokens {
    fn from(granted: Granted) -> Self {
        let refresh = granted.refresh_token.map(RefreshToken::into_secret);
        let scopes = granted.scopes;
        Self {
            access: Zeroizing::new(granted.access_token.into_secret()),
            refresh: refresh.map(Zeroizing::new),
            expires_in: granted.expires_in,
            refresh_expires_in: granted.refresh_expires_in,
            scopes: scopes.map(|scopes| scopes.iter().map(|scope| scope.to_string()).collect()),
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tokens")
            .field("expires_in", &self.expires_in)
            .field("refreshable", &self.refresh.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
