//! `mode = "oauth"`: the operator's knobs.

use std::sync::Arc;

use super::{checks, secret};
use crate::{
    policy::{
        Endpoints, Inputs, OAuth, OnIssuerChange, Pkce, PreRegistered, Registration, Resource,
        TokenAuth, leg::fetchable,
    },
    table::{Item, Table},
};

/// Every key beside `mode`.
pub(super) const KEYS: &[&str] = &[
    "client_id",
    "client_secret",
    "issuer",
    "registration",
    "trusted_issuer",
    "metadata_url",
    "endpoints",
    "pkce",
    "resource",
    "scopes",
    "scopes_max",
    "on_issuer_change",
    "refresh_scope",
    "token_auth_method",
    "extra_authorize_params",
    "revoke",
    "allow_http_loopback",
];

/// The parameters of an authorization request that a file may add. Those of the protocol are not among them.
const EXTRA: &[&str] = &[
    "access_type",
    "prompt",
    "audience",
    "login_hint",
    "domain_hint",
];

/// Characters of one such parameter, of a client id, and of a resource, at most.
const LONGEST: usize = 2048;
/// Scopes of a list at most.
const MOST_SCOPES: usize = 100;

pub(super) fn read(table: &Table<'_>, inputs: &Inputs<'_>) -> OAuth {
    let plain = table.flag("allow_http_loopback").unwrap_or_default();
    let issuer = issuer(table, "issuer", plain);
    let written = KEYS.iter().filter(|key| table.has(key));
    let knobs = OAuth {
        client: client(table, inputs),
        issuer,
        registration: registration(table),
        trusted_issuer: self::issuer(table, "trusted_issuer", plain),
        metadata_url: url(table, "metadata_url", plain),
        endpoints: endpoints(table, plain),
        pkce: pkce(table),
        resource: resource(table),
        scopes: scopes(table, "scopes"),
        scopes_max: scopes(table, "scopes_max"),
        on_issuer_change: on_issuer_change(table),
        refresh_scope: switch(table, "refresh_scope", "send", "omit").unwrap_or_default(),
        token_auth: token_auth(table),
        extra_authorize_params: extra(table),
        revoke: switch(table, "revoke", "auto", "off").unwrap_or(true),
        allow_http_loopback: plain,
        presets: Vec::new(),
        written: written.copied().collect(),
    };
    checks::check(table, &knobs);
    if knobs.registration == Registration::Cimd && !inputs.client_metadata {
        let message = "needs `client_metadata_url` in `[connect]` of tollgate.toml, where authorization servers read who \
                       Tollgate is; set it, or use another registration";
        table.fault(table.place_of("registration").fault(message));
    }
    let Some(host) = knobs.issuer.as_deref().and_then(host) else {
        return knobs;
    };
    let knobs = knobs.with_presets(&host);
    checks::check_presets(table, &knobs);
    knobs
}

/// The host of a URL that was read before.
fn host(url: &str) -> Option<String> {
    let endpoint = fetchable(url, true).ok()?;
    Some(endpoint.host().to_string())
}

fn client(table: &Table<'_>, inputs: &Inputs<'_>) -> Option<PreRegistered> {
    let secret = secret(table, "client_secret", inputs);
    let written = table.text("client_id")?;
    let id = visible(table, &written)?;
    Some(PreRegistered { id, secret })
}

fn registration(table: &Table<'_>) -> Registration {
    let words = [
        ("auto", Some(Registration::Auto)),
        ("cimd", Some(Registration::Cimd)),
        ("dcr", Some(Registration::Dcr)),
        ("pre-registered", Some(Registration::PreRegistered)),
    ];
    table.choice("registration", &words).unwrap_or_default()
}

fn pkce(table: &Table<'_>) -> Pkce {
    let words = [
        ("strict", Some(Pkce::Strict)),
        ("assume_s256", Some(Pkce::AssumeS256)),
    ];
    table.choice("pkce", &words).unwrap_or_default()
}

fn on_issuer_change(table: &Table<'_>) -> OnIssuerChange {
    let words = [
        ("ask", Some(OnIssuerChange::Ask)),
        ("follow", Some(OnIssuerChange::Follow)),
    ];
    table.choice("on_issuer_change", &words).unwrap_or_default()
}

fn token_auth(table: &Table<'_>) -> Option<TokenAuth> {
    let words = [
        ("none", Some(TokenAuth::None)),
        ("client_secret_basic", Some(TokenAuth::Basic)),
        ("client_secret_post", Some(TokenAuth::Post)),
        ("private_key_jwt", None),
    ];
    table.choice("token_auth_method", &words)
}

/// One of two words.
fn switch(
    table: &Table<'_>,
    key: &'static str,
    on: &'static str,
    off: &'static str,
) -> Option<bool> {
    table.choice(key, &[(on, Some(true)), (off, Some(false))])
}

/// A URL that will be fetched or opened: it passes what every other does before it is (`Permit::fetch`). It is never
/// repeated in a message: it may hold a secret.
fn url(table: &Table<'_>, key: &'static str, plain: bool) -> Option<Arc<str>> {
    let written = table.text(key)?;
    match fetchable(&written.value, plain) {
        Ok(_) => Some(written.value.into()),
        Err(why) => {
            let says_what_to_do = why.contains("; ");
            let next = if says_what_to_do {
                ""
            } else {
                "; correct the URL"
            };
            table.fault(written.fault(format!("{why}{next}")));
            None
        }
    }
}

/// An issuer: a URL without a query (RFC 8414, section 2), kept byte for byte.
fn issuer(table: &Table<'_>, key: &'static str, plain: bool) -> Option<Arc<str>> {
    let issuer = url(table, key, plain)?;
    if issuer.contains('?') {
        let message = "an issuer has no query; write it as its metadata does";
        table.fault(table.place_of(key).fault(message));
        return None;
    }
    Some(issuer)
}

fn endpoints(table: &Table<'_>, plain: bool) -> Option<Endpoints> {
    let table = table.table("endpoints")?;
    for (key, missing) in [
        ("authorization", "`authorization` is missing; add it"),
        ("token", "`token` is missing; add it"),
    ] {
        if !table.has(key) {
            table.fault(table.place().fault(missing));
        }
    }
    let url = |key| url(&table, key, plain);
    let (revocation, registration) = (url("revocation"), url("registration"));
    let (authorization, token) = (url("authorization"), url("token"));
    Some(Endpoints {
        authorization: authorization?,
        token: token?,
        revocation,
        registration,
    })
}

/// `auto`, `omit`, or the URI to send (RFC 8707, section 2).
fn resource(table: &Table<'_>) -> Resource {
    let Some(written) = table.text("resource") else {
        return Resource::Auto;
    };
    match written.value.as_str() {
        "auto" => Resource::Auto,
        "omit" => Resource::Omit,
        uri if is_absolute(uri) => Resource::Exactly(uri.into()),
        _ => {
            table.fault(written.fault(
                "expected \"auto\", \"omit\", or an absolute URI without a fragment; correct it",
            ));
            Resource::Auto
        }
    }
}

/// Whether `uri` begins with a scheme and holds nothing that cannot stand in a URI (RFC 3986, section 4.3).
fn is_absolute(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else {
        return false;
    };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(legal)
        && !rest.is_empty()
        && uri.len() <= LONGEST
        && rest.bytes().all(fits)
}

/// Scopes (RFC 6749, section 3.3); an empty list asks for none.
fn scopes(table: &Table<'_>, key: &'static str) -> Option<Vec<Arc<str>>> {
    let items = table.texts(key)?;
    if items.len() > MOST_SCOPES {
        let message = format!(
            "names {} scopes, expected at most {MOST_SCOPES}",
            items.len()
        );
        table.fault(table.place_of(key).fault(message));
    }
    let mut scopes: Vec<Arc<str>> = Vec::with_capacity(items.len());
    for item in items {
        let legal = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        let fits = !item.value.is_empty() && item.value.bytes().all(legal);
        if !fits {
            let message = "expected one scope, of visible ASCII characters without spaces, `\"` and `\\`; correct it";
            table.fault(item.fault(message));
        } else if scopes.iter().any(|scope| **scope == *item.value) {
            table.fault(item.fault(format!("`{}` stands twice; remove one", item.value)));
        } else {
            scopes.push(item.value.into());
        }
    }
    Some(scopes)
}

fn extra(table: &Table<'_>) -> Vec<(Arc<str>, Arc<str>)> {
    let Some(table) = table.table("extra_authorize_params") else {
        return Vec::new();
    };
    let params = EXTRA.iter().filter_map(|name| {
        let value = visible(&table, &table.text(name)?)?;
        Some((Arc::from(*name), value))
    });
    params.collect()
}

/// Text of visible ASCII characters and spaces (VSCHAR of RFC 6749, appendix A).
fn visible(table: &Table<'_>, item: &Item<String>) -> Option<Arc<str>> {
    let text = item.value.as_str();
    let fits = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if fits && !text.is_empty() && text.len() <= LONGEST {
        return Some(text.into());
    }
    table.fault(item.fault(format!(
        "expected 1 to {LONGEST} visible ASCII characters; correct it"
    )));
    None
}
