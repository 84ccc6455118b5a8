//! The authorization server: where its metadata may be, and whether a document can be trusted (RFC 8414).

use serde::Deserialize;

use super::{
    discovery::Discovered,
    document::{MAX_URL, scopes, words},
    fetch::shown,
};
use crate::{
    address::Target,
    policy::{OAuth, Permit, Pkce},
    refusal::Refusal,
};

/// What is read of a document; a member that stands twice makes it unusable.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    registration_endpoint: Option<String>,
    jwks_uri: Option<String>,
    #[serde(default, deserialize_with = "words")]
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "words")]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "words")]
    scopes_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: Option<bool>,
    #[serde(default)]
    client_id_metadata_document_supported: Option<bool>,
}

/// Who a document has to be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected<'a> {
    /// Exactly this issuer.
    Issuer(&'a str),
    /// The origin of the server itself, for which nobody named an issuer.
    Origin(&'a str),
    /// Whoever would publish it at this URL, which the operator named.
    PublishedAt(&'a str),
}

/// Why a document is not used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error(
        "the metadata of `{asked}` is that of issuer `{found}`; set auth.trusted_issuer to exactly that where it is right"
    )]
    Issuer { asked: String, found: String },
    #[error("the metadata of `{0}` names no {1}")]
    Missing(String, &'static str),
    #[error(
        "the metadata of `{0}` does not say that it checks PKCE with S256; set auth.pkce = \"assume_s256\" where it does"
    )]
    Silent(String),
    #[error("the metadata of `{0}` lists PKCE methods without S256, and no setting opens that")]
    Plain(String),
    #[error("{}", .0.public)]
    Forbidden(Refusal),
}

impl Document {
    /// Judges all that will be used of it, and what of it must never be used by others.
    pub(super) fn judge(
        self,
        expected: Expected<'_>,
        knobs: &OAuth,
        permit: &Permit,
    ) -> Result<Discovered, Unfit> {
        if !self.is_of(expected, knobs) {
            return Err(Unfit::Issuer {
                asked: shown(expected.text(), 200),
                found: shown(&self.issuer, 200),
            });
        }
        let name = shown(&self.issuer, 200);
        self.check_pkce(&name, knobs)?;
        let needed = |url: Option<String>, what| {
            let url = url.filter(|url| url.len() <= MAX_URL);
            url.ok_or_else(|| Unfit::Missing(name.clone(), what))
        };
        let discovered = Discovered {
            authorization_endpoint: needed(self.authorization_endpoint, "authorization_endpoint")?,
            token_endpoint: needed(self.token_endpoint, "token_endpoint")?,
            revocation_endpoint: self.revocation_endpoint,
            registration_endpoint: self.registration_endpoint,
            iss_supported: self
                .authorization_response_iss_parameter_supported
                .unwrap_or_default(),
            cimd_supported: self
                .client_id_metadata_document_supported
                .unwrap_or_default(),
            token_auth_methods: self.token_endpoint_auth_methods_supported,
            scopes_supported: self.scopes_supported.map(scopes),
            issuer: self.issuer,
            resource: None,
            resource_scopes: None,
        };
        for url in discovered.endpoints().chain(self.jwks_uri.as_deref()) {
            permit.fetch(url).map_err(Unfit::Forbidden)?;
        }
        Ok(discovered)
    }

    fn is_of(&self, expected: Expected<'_>, knobs: &OAuth) -> bool {
        let is = |named: Option<&str>| named == Some(self.issuer.as_str());
        if is(knobs.trusted_issuer.as_deref()) || is(knobs.issuer.as_deref()) {
            return true;
        }
        if knobs.issuer.is_some() {
            return false;
        }
        expected.is(&self.issuer)
    }

    fn check_pkce(&self, name: &str, knobs: &OAuth) -> Result<(), Unfit> {
        match &self.code_challenge_methods_supported {
            Some(methods) if methods.iter().any(|method| method == "S256") => Ok(()),
            Some(methods) if !methods.is_empty() => Err(Unfit::Plain(name.to_owned())),
            _ if knobs.pkce == Pkce::AssumeS256 => Ok(()),
            _ => Err(Unfit::Silent(name.to_owned())),
        }
    }
}

impl Expected<'_> {
    /// Whether an issuer is this one.
    pub(super) fn is(&self, found: &str) -> bool {
        match self {
            Self::Issuer(issuer) => found == *issuer,
            Self::Origin(origin) => found.strip_suffix('/').unwrap_or(found) == *origin,
            Self::PublishedAt(url) => {
                candidates(found).is_some_and(|urls| urls.iter().any(|own| own == url))
            }
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Issuer(text) | Self::Origin(text) | Self::PublishedAt(text) => text,
        }
    }
}

/// Where the metadata of an issuer may be (RFC 8414, section 3.1; OpenID Connect Discovery, section 4.1), in order;
/// `None` for what is no issuer.
pub(super) fn candidates(issuer: &str) -> Option<Vec<String>> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    let (origin, path) = Target::from_wire_with_path(issuer).ok()?;
    if path.contains('?') {
        return None;
    }
    let path = path.strip_suffix('/').unwrap_or(&path);
    let mut urls = vec![
        format!("{origin}{OAUTH}{path}"),
        format!("{origin}{OPENID}{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}{OPENID}"));
    }
    Some(urls)
}

/// The host of a URL, as presets know it.
pub(super) fn host(url: &str) -> Option<String> {
    let target = Target::from_wire(url).ok()?;
    Some(target.host().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_without_a_path_has_two_places_and_one_with_a_path_three() {
        let root = [
            "https://a/.well-known/oauth-authorization-server",
            "https://a/.well-known/openid-configuration",
        ];
        assert_eq!(candidates("https://a").unwrap(), root);
        assert_eq!(candidates("https://A:443/").unwrap(), root);
        let tenant = [
            "https://a/.well-known/oauth-authorization-server/t/1",
            "https://a/.well-known/openid-configuration/t/1",
            "https://a/t/1/.well-known/openid-configuration",
        ];
        assert_eq!(candidates("https://a/t/1").unwrap(), tenant);
        assert_eq!(candidates("https://a/t/1/").unwrap(), tenant);
        for wrong in [
            "",
            "a",
            "https://a?x",
            "https://u@a",
            "https://a/#f",
            "ftp://a",
        ] {
            assert_eq!(candidates(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_member_that_stands_twice_makes_a_document_unusable() {
        let twice = r#"{"issuer":"https://a","issuer":"https://b"}"#;
        assert!(serde_json::from_str::<Document>(twice).is_err());
    }
}
