//! A client at its provider: whether it is known there, and its end.

use bytes::Bytes;
use http::Method;
use zeroize::Zeroizing;

use super::Client;
use crate::{
    connect::provider::{
        discovery::Discovered,
        fetch::{Way, authorization},
        pkce,
        token::{self, Failure},
    },
    deadline::Deadline,
    egress::Egress,
    policy::Permit,
};

/// What became of a client at its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It is known there.
    Alive,
    /// It is not.
    Dead,
    /// The answer tells neither.
    Unknown,
}

/// Asks whether the provider still knows a client, by a code that it never gave: who is known is told that the code is
/// wrong.
pub async fn probe(
    egress: &Egress,
    permit: &Permit,
    client: &Client,
    token_endpoint: &str,
    deadline: Deadline,
) -> Probe {
    let discovered = Discovered {
        token_endpoint: token_endpoint.to_owned(),
        ..Discovered::default()
    };
    let verifier = pkce::Verifier::new();
    let code = token::Code {
        code: "tollgate-asks-whether-this-client-is-known",
        verifier: verifier.expose(),
        redirect_uri: "https://localhost/oauth/callback",
        resource: None,
    };
    match token::exchange(egress, permit, client, &discovered, code, deadline).await {
        Err(Failure::Terminal {
            client_dead: true, ..
        }) => Probe::Dead,
        Err(Failure::Terminal { error, .. }) if error == "invalid_grant" => Probe::Alive,
        _ => Probe::Unknown,
    }
}

/// Deletes a registration (RFC 7592, section 2.3). Whether it is gone.
pub async fn unregister(
    egress: &Egress,
    permit: &Permit,
    client: &Client,
    deadline: Deadline,
) -> bool {
    let Some(management) = &client.management else {
        return false;
    };
    let token = Zeroizing::new(format!("Bearer {}", *management.token));
    let Some(field) = authorization(&token) else {
        return false;
    };
    let way = Way {
        egress,
        permit,
        deadline,
    };
    let answer = way
        .send(Method::DELETE, &management.uri, &[field], Bytes::new())
        .await;
    answer.is_ok_and(|answer| answer.status.is_success() || answer.status.as_u16() == 404)
}
