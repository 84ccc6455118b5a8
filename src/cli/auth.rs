//! How a server is shown who calls, in the words of its file: for `check` and `explain`.

use crate::policy::{Auth, OAuth, OnIssuerChange, Pkce, Registration, Resource, Server, TokenAuth};

/// The path below `public_url` that providers send browsers back to.
const CALLBACK: &str = "/oauth/callback";

/// The redirect URI that a client is registered with.
pub(super) fn redirect_uri(public_url: &str) -> String {
    format!("{public_url}{CALLBACK}")
}

/// What differs from the defaults, whether the file says so or a preset; no secret, and of URLs no query.
pub(super) fn settings(auth: &Auth) -> Vec<String> {
    match auth {
        Auth::None | Auth::Bearer => Vec::new(),
        Auth::Header(name) => vec![format!("header = \"{name}\"")],
        Auth::Shared(shared) => {
            let header = shared.header.iter();
            let header = header.map(|name| format!("header = \"{name}\""));
            let kept = match shared.secret {
                Some(_) => "secret = …",
                None => "its secret in the vault, put there by `tollgate secret set`",
            };
            header.chain([kept.to_owned()]).collect()
        }
        Auth::OAuth(knobs) => self::knobs(knobs),
    }
}

/// Whether people connect to this server with OAuth.
pub(super) fn is_oauth(server: &Server) -> bool {
    server.auth.oauth().is_some()
}

fn knobs(knobs: &OAuth) -> Vec<String> {
    let mut said = Vec::new();
    let mut add = |key: &str, value: Option<String>| {
        said.extend(value.map(|value| format!("{key} = {value}")));
    };
    let client = knobs.client.as_ref();
    add("client_id", client.map(|client| quoted(&client.id)));
    let secret = client.and_then(|client| client.secret.as_ref());
    add("client_secret", secret.map(|_| "…".to_owned()));
    add("issuer", knobs.issuer.as_deref().map(url));
    add("registration", registration(knobs.registration));
    add("trusted_issuer", knobs.trusted_issuer.as_deref().map(url));
    add("metadata_url", knobs.metadata_url.as_deref().map(url));
    add(
        "endpoints",
        knobs.endpoints.as_ref().map(|places| url(&places.token)),
    );
    let assumed = (knobs.pkce == Pkce::AssumeS256).then(|| quoted("assume_s256"));
    add("pkce", assumed);
    add("resource", resource(&knobs.resource));
    add("scopes", knobs.scopes.as_deref().map(list));
    add("scopes_max", knobs.scopes_max.as_deref().map(list));
    let follows = knobs.on_issuer_change == OnIssuerChange::Follow;
    add("on_issuer_change", follows.then(|| quoted("follow")));
    add("refresh_scope", knobs.refresh_scope.then(|| quoted("send")));
    add("token_auth_method", knobs.token_auth.map(token_auth));
    let extra = knobs.extra_authorize_params.iter();
    let names: Vec<&str> = extra.map(|(name, _)| &**name).collect();
    let extra = (!names.is_empty()).then(|| format!("{{ {} }}", names.join(", ")));
    add("extra_authorize_params", extra);
    add("revoke", (!knobs.revoke).then(|| quoted("off")));
    add(
        "allow_http_loopback",
        knobs.allow_http_loopback.then(|| "true".to_owned()),
    );
    said
}

fn registration(registration: Registration) -> Option<String> {
    match registration {
        Registration::Auto => None,
        Registration::Cimd => Some(quoted("cimd")),
        Registration::Dcr => Some(quoted("dcr")),
        Registration::PreRegistered => Some(quoted("pre-registered")),
    }
}

fn resource(resource: &Resource) -> Option<String> {
    match resource {
        Resource::Auto => None,
        Resource::Omit => Some(quoted("omit")),
        Resource::Exactly(uri) => Some(url(uri)),
    }
}

fn token_auth(method: TokenAuth) -> String {
    quoted(match method {
        TokenAuth::None => "none",
        TokenAuth::Basic => "client_secret_basic",
        TokenAuth::Post => "client_secret_post",
    })
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn url(url: &str) -> String {
    quoted(url.split_once('?').map_or(url, |(url, _)| url))
}

fn list(words: &[std::sync::Arc<str>]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        policy::{Endpoints, PreRegistered, Shared},
        secret::Secret,
    };

    #[test]
    fn what_acts_is_told_without_secrets_and_queries() {
        let secret = std::sync::Arc::new(Secret::new(b"hunter2".to_vec()));
        let knobs = OAuth {
            client: Some(PreRegistered {
                id: "app".into(),
                secret: Some(secret.clone()),
            }),
            issuer: Some("https://accounts.google.com".into()),
            registration: Registration::Dcr,
            trusted_issuer: Some("https://a.example".into()),
            metadata_url: Some("https://a.example/m?key=hunter2".into()),
            endpoints: Some(Endpoints {
                authorization: "https://a.example/authorize".into(),
                token: "https://a.example/token".into(),
                revocation: None,
                registration: None,
            }),
            pkce: Pkce::AssumeS256,
            resource: Resource::Exactly("api://x".into()),
            scopes: Some(vec!["read".into(), "write".into()]),
            scopes_max: Some(Vec::new()),
            on_issuer_change: OnIssuerChange::Follow,
            refresh_scope: true,
            token_auth: Some(TokenAuth::Basic),
            extra_authorize_params: vec![("login_hint".into(), "hunter2".into())],
            revoke: false,
            allow_http_loopback: true,
            ..OAuth::default()
        };
        assert_eq!(
            settings(&Auth::OAuth(Box::new(knobs))),
            [
                "client_id = \"app\"",
                "client_secret = …",
                "issuer = \"https://accounts.google.com\"",
                "registration = \"dcr\"",
                "trusted_issuer = \"https://a.example\"",
                "metadata_url = \"https://a.example/m\"",
                "endpoints = \"https://a.example/token\"",
                "pkce = \"assume_s256\"",
                "resource = \"api://x\"",
                "scopes = [\"read\", \"write\"]",
                "scopes_max = []",
                "on_issuer_change = \"follow\"",
                "refresh_scope = \"send\"",
                "token_auth_method = \"client_secret_basic\"",
                "extra_authorize_params = { login_hint }",
                "revoke = \"off\"",
                "allow_http_loopback = true",
            ]
        );
        let shared = Auth::Shared(Shared {
            header: None,
            secret: Some(secret),
        });
        assert_eq!(settings(&shared), ["secret = …"]);
        let kept = Auth::Shared(Shared {
            header: Some(http::HeaderName::from_static("x-api-key")),
            secret: None,
        });
        assert_eq!(
            settings(&kept),
            [
                "header = \"x-api-key\"",
                "its secret in the vault, put there by `tollgate secret set`"
            ]
        );
        let plain = Auth::OAuth(Box::default());
        assert_eq!(settings(&plain), [""; 0], "the defaults go without saying");
    }
}
