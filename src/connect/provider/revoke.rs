//! The end of tokens at their provider (RFC 7009).

use std::time::Duration;

use serde::Deserialize;

use super::{
    fetch::{Way, json},
    form,
    register::Client,
};
use crate::{
    connect::Revoked,
    deadline::Deadline,
    egress::{Egress, Fetched},
    policy::Permit,
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
        let pairs = [("token", token), ("token_type_hint", hint)];
        let (fields, body) = form::authenticated(client, client.auth, &pairs);
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
