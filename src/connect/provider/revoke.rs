//! The end of tokens at their provider (RFC 7009).

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use url::form_urlencoded::{Serializer, byte_serialize};
use zeroize::Zeroizing;

use super::{
    fetch::{FORM, Way, authorization, content, json},
    register::Client,
};
use crate::{
    connect::Revoked,
    deadline::Deadline,
    egress::{Egress, Fetched},
    policy::{Permit, TokenAuth},
};

/// How long one token may take.
const LIMIT: Duration = Duration::from_secs(3);

/// Revokes a connection's tokens: the refresh token first, whose end most providers take for that of all, then the access
/// token. A token that the provider does not know is revoked (section 2.2).
pub async fn revoke(
    egress: &Egress,
    permit: &Permit,
    client: &Client,
    revocation_endpoint: Option<&str>,
    refresh: Option<&str>,
    access: Option<&str>,
) -> Revoked {
    let is_off = permit
        .server()
        .auth
        .oauth()
        .is_some_and(|knobs| !knobs.revoke);
    let (Some(url), false) = (revocation_endpoint, is_off) else {
        return Revoked::Unsupported;
    };
    let tokens = [("refresh_token", refresh), ("access_token", access)];
    let mut revoked = Revoked::Unsupported;
    for (hint, token) in tokens {
        let Some(token) = token else {
            continue;
        };
        let way = Way {
            egress,
            permit,
            deadline: Deadline::after(LIMIT),
        };
        let (fields, body) = form(client, token, hint);
        let gone = match way.post(url, &fields, body).await {
            // Many access tokens end by themselves only, which is no failure beside a refresh token that is gone.
            Ok(answer) => is_gone(&answer) || (revoked == Revoked::Yes && is_unsupported(&answer)),
            Err(_) => false,
        };
        if !gone {
            return Revoked::No;
        }
        revoked = Revoked::Yes;
    }
    revoked
}

fn is_gone(answer: &Fetched) -> bool {
    answer.status.is_success()
}

fn is_unsupported(answer: &Fetched) -> bool {
    #[derive(Deserialize)]
    struct Refused {
        error: String,
    }
    let said = json(answer).and_then(|text| serde_json::from_slice::<Refused>(text).ok());
    said.is_some_and(|said| said.error == "unsupported_token_type")
}

/// The request (section 2.1), with the client's authentication as at the token endpoint.
fn form(
    client: &Client,
    token: &str,
    hint: &str,
) -> (Vec<(HeaderName, HeaderValue)>, Zeroizing<Vec<u8>>) {
    let secret = client.secret.as_deref().map_or("", String::as_str);
    // Room for all of it escaped, so that no copy stays behind.
    let room = 3 * (token.len() + secret.len() + client.id.len()) + 128;
    let mut pairs = Serializer::new(String::with_capacity(room));
    pairs
        .append_pair("token", token)
        .append_pair("token_type_hint", hint);
    let mut fields = vec![content(FORM)];
    match client.auth {
        TokenAuth::Basic => fields.extend(basic(&client.id, secret)),
        TokenAuth::Post => {
            pairs
                .append_pair("client_id", &client.id)
                .append_pair("client_secret", secret);
        }
        TokenAuth::None => {
            pairs.append_pair("client_id", &client.id);
        }
    }
    (fields, Zeroizing::new(pairs.finish().into_bytes()))
}

/// RFC 6749, section 2.3.1: both parts are form-encoded first.
fn basic(id: &str, secret: &str) -> Option<(HeaderName, HeaderValue)> {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let (id, secret) = (encoded(id), Zeroizing::new(encoded(secret)));
    let pair = Zeroizing::new(format!("{id}:{}", *secret));
    let text = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    authorization(&text)
}
