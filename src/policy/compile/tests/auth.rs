//! `[auth]`: what is sent to a server, and where it comes from.

mod faults;

use http::HeaderName;

use super::*;
use crate::{
    policy::{
        Auth, Endpoints, OAuth, OnIssuerChange, Pkce, PreRegistered, Registration, Resource,
        Shared, TokenAuth,
    },
    secret::{Secret, Source},
};

/// What is kept at the places that these tests name.
fn kept(source: &Source) -> Result<Secret, String> {
    let text: &[u8] = match source {
        Source::File(path) if path == "gh.secret" => b"s3cret\n",
        Source::Env(name) if name == "KEY" => b"k3y",
        Source::Credential(name) if name == "lines" => b"one\ntwo\n",
        Source::Credential(name) if name == "empty" => b"\n",
        other => return Err(format!("nothing at {other:?}")),
    };
    Ok(Secret::new(text.to_vec()))
}

/// A server whose `[auth]` is this.
fn with(auth: &str, change: impl FnOnce(&mut Inputs<'_>)) -> Result<Snapshot, Vec<String>> {
    let text = format!("url = \"https://mcp.example.com/\"\n[auth]\n{auth}");
    compiled(&[("servers/a.toml", &text)], |inputs| {
        inputs.secret = &kept;
        change(inputs);
    })
}

fn auth(text: &str) -> Auth {
    let policy = with(text, |_| {}).expect("no faults");
    policy.servers["a"].auth.clone()
}

fn oauth(text: &str) -> OAuth {
    let auth = auth(&format!("mode = \"oauth\"\n{text}"));
    auth.oauth().expect("OAuth").clone()
}

/// The faults of `[auth]`, whose first line is line 3.
fn wrong(text: &str) -> String {
    with(text, |_| {}).expect_err("faults").join("\n")
}

#[test]
fn each_mode_says_what_is_sent() {
    assert_eq!(auth("mode = \"none\"\n"), Auth::None);
    assert_eq!(auth("mode = \"bearer\"\n"), Auth::Bearer);
    assert_eq!(
        auth("mode = \"header\"\nheader = \"X-Api-Key\"\n"),
        Auth::Header(HeaderName::from_static("x-api-key"))
    );
    assert_eq!(
        auth("mode = \"shared\"\nsecret = \"file:gh.secret\"\n"),
        Auth::Shared(Shared {
            header: None,
            secret: Some(Arc::new(Secret::new(b"s3cret".to_vec()))),
        })
    );
    let kept = auth("mode = \"shared\"\nheader = \"x-api-key\"\n");
    assert_eq!(
        kept,
        Auth::Shared(Shared {
            header: Some(HeaderName::from_static("x-api-key")),
            secret: None,
        }),
        "in the vault"
    );
    assert!(kept.is_in_vault() && !kept.is_personal());
    assert_eq!(
        auth("mode = \"shared\"\nheader = \"x-api-key\"\nsecret = \"env:KEY\"\n"),
        Auth::Shared(Shared {
            header: Some(HeaderName::from_static("x-api-key")),
            secret: Some(Arc::new(Secret::new(b"k3y".to_vec()))),
        })
    );
    assert_eq!(
        oauth(""),
        OAuth::default(),
        "the defaults are the strict ones"
    );
    assert!(OAuth::default().revoke);
    let silent = policy(&[("servers/a.toml", "url = \"https://mcp.example.com/\"\n")]);
    assert_eq!(silent.servers["a"].auth, Auth::None);
}

#[test]
fn every_knob_acts() {
    let knobs = oauth(
        r#"
client_id = "tollgate app"
client_secret = "file:gh.secret"
issuer = "https://auth.example.com/tenant"
registration = "pre-registered"
trusted_issuer = "https://auth.example.com"
metadata_url = "https://auth.example.com/meta?x=1"
pkce = "assume_s256"
resource = "api://app"
scopes = ["read", "write:all"]
scopes_max = ["read", "write:all", "admin"]
on_issuer_change = "follow"
refresh_scope = "send"
token_auth_method = "client_secret_post"
extra_authorize_params = { access_type = "offline", prompt = "consent", audience = "https://api.example.com/", login_hint = "a b", domain_hint = "example.com" }
revoke = "off"
"#,
    );
    let texts = |words: &[&str]| words.iter().map(|word| Arc::from(*word)).collect();
    let pair = |name: &str, value: &str| (Arc::from(name), Arc::from(value));
    assert_eq!(
        knobs,
        OAuth {
            client: Some(PreRegistered {
                id: "tollgate app".into(),
                secret: Some(Arc::new(Secret::new(b"s3cret".to_vec()))),
            }),
            issuer: Some("https://auth.example.com/tenant".into()),
            registration: Registration::PreRegistered,
            trusted_issuer: Some("https://auth.example.com".into()),
            metadata_url: Some("https://auth.example.com/meta?x=1".into()),
            endpoints: None,
            pkce: Pkce::AssumeS256,
            resource: Resource::Exactly("api://app".into()),
            scopes: Some(texts(&["read", "write:all"])),
            scopes_max: Some(texts(&["read", "write:all", "admin"])),
            on_issuer_change: OnIssuerChange::Follow,
            refresh_scope: true,
            token_auth: Some(TokenAuth::Post),
            extra_authorize_params: vec![
                pair("access_type", "offline"),
                pair("prompt", "consent"),
                pair("audience", "https://api.example.com/"),
                pair("login_hint", "a b"),
                pair("domain_hint", "example.com"),
            ],
            revoke: false,
            allow_http_loopback: false,
            presets: Vec::new(),
            written: vec![
                "client_id",
                "client_secret",
                "issuer",
                "registration",
                "trusted_issuer",
                "metadata_url",
                "pkce",
                "resource",
                "scopes",
                "scopes_max",
                "on_issuer_change",
                "refresh_scope",
                "token_auth_method",
                "extra_authorize_params",
                "revoke",
            ],
        }
    );
}

#[test]
fn endpoints_stand_in_place_of_discovery() {
    let knobs = oauth(
        r#"
issuer = "https://auth.example.com"
[auth.endpoints]
authorization = "https://auth.example.com/authorize"
token = "https://auth.example.com/token"
revocation = "https://auth.example.com/revoke"
registration = "https://auth.example.com/register"
"#,
    );
    assert_eq!(
        knobs.endpoints,
        Some(Endpoints {
            authorization: "https://auth.example.com/authorize".into(),
            token: "https://auth.example.com/token".into(),
            revocation: Some("https://auth.example.com/revoke".into()),
            registration: Some("https://auth.example.com/register".into()),
        })
    );
    assert_eq!(
        wrong(
            "mode = \"oauth\"\nissuer = \"https://a.example\"\nendpoints = { token = \"http://a.example/t\", x = 1 }\n"
        ),
        "\
servers/a.toml:5:13: auth.endpoints: `authorization` is missing; add it
servers/a.toml:5:23: auth.endpoints.token: `a.example` is named with plain http, expected https; correct the URL
servers/a.toml:5:45: auth.endpoints.x: unknown key; expected one of `authorization`, `token`, `revocation`, `registration`"
    );
}

#[test]
fn words_and_their_opposites() {
    for (text, expected) in [
        ("registration = \"auto\"\n", OAuth::default()),
        (
            "registration = \"dcr\"\n",
            OAuth {
                registration: Registration::Dcr,
                ..OAuth::default()
            },
        ),
        (
            "registration = \"cimd\"\n",
            OAuth {
                registration: Registration::Cimd,
                ..OAuth::default()
            },
        ),
        ("pkce = \"strict\"\n", OAuth::default()),
        ("resource = \"auto\"\n", OAuth::default()),
        (
            "resource = \"omit\"\n",
            OAuth {
                resource: Resource::Omit,
                ..OAuth::default()
            },
        ),
        (
            "scopes = []\n",
            OAuth {
                scopes: Some(Vec::new()),
                ..OAuth::default()
            },
        ),
        ("on_issuer_change = \"ask\"\n", OAuth::default()),
        ("refresh_scope = \"omit\"\n", OAuth::default()),
        (
            "token_auth_method = \"none\"\n",
            OAuth {
                token_auth: Some(TokenAuth::None),
                ..OAuth::default()
            },
        ),
        (
            "token_auth_method = \"client_secret_basic\"\n",
            OAuth {
                token_auth: Some(TokenAuth::Basic),
                ..OAuth::default()
            },
        ),
        ("revoke = \"auto\"\n", OAuth::default()),
        ("allow_http_loopback = false\n", OAuth::default()),
    ] {
        let mut knobs = oauth(text);
        assert_eq!(knobs.written.len(), 1, "{text}");
        knobs.written.clear();
        assert_eq!(knobs, expected, "{text}");
    }
}

#[test]
fn presets_of_an_issuer_in_the_file_are_laid_under_it() {
    let knobs = oauth(
        "client_id = \"x\"\nissuer = \"https://login.microsoftonline.com/common/v2.0\"\nrefresh_scope = \"omit\"\n",
    );
    assert_eq!(knobs.presets, ["entra"]);
    assert_eq!(knobs.resource, Resource::Omit);
    assert_eq!(knobs.pkce, Pkce::AssumeS256);
    assert!(!knobs.refresh_scope);
}
