//! What the server and its authorization server answer.

use serde_json::{Value, json};

use super::{ISSUER, RESOURCE, SERVER};
use crate::support::provider::Answers;

/// `METHOD URL` with what is answered: one answer, or several in an array.
pub(super) fn answers(list: &[(&str, Value)]) -> Answers {
    list.iter()
        .map(|(question, answer)| {
            let answers = match answer {
                Value::Array(several) => several.clone(),
                one => vec![one.clone()],
            };
            let answers = answers
                .into_iter()
                .map(|answer| serde_json::from_value(answer).unwrap());
            ((*question).to_owned(), answers.collect())
        })
        .collect()
}

pub(super) fn usual() -> Vec<(&'static str, Value)> {
    vec![
        ("POST http://127.0.0.1:9000/mcp", challenge("read")),
        (
            "GET http://127.0.0.1:9000/.well-known/oauth-protected-resource/mcp",
            resource(&[ISSUER]),
        ),
        (
            "GET http://127.0.0.2:9000/.well-known/oauth-authorization-server",
            metadata(ISSUER, json!({})),
        ),
        (
            "POST http://127.0.0.2:9000/register",
            json!([
                registration("c-1"),
                registration("c-2"),
                registration("c-3")
            ]),
        ),
        ("POST http://127.0.0.2:9000/token", tokens("1", "read")),
        ("POST http://127.0.0.2:9000/revoke", json!({})),
        (
            "DELETE http://127.0.0.2:9000/register/c-1",
            json!({"status": 204}),
        ),
        (
            "DELETE http://127.0.0.2:9000/register/c-2",
            json!({"status": 204}),
        ),
    ]
}

pub(super) fn challenge(scope: &str) -> Value {
    let challenge = format!("Bearer resource_metadata=\"{RESOURCE}\", scope=\"{scope}\"");
    json!({"status": 401, "headers": {"www-authenticate": challenge}})
}

pub(super) fn resource(issuers: &[&str]) -> Value {
    json!({"body": {
        "resource": SERVER,
        "authorization_servers": issuers,
        "scopes_supported": ["read", "write"],
    }})
}

/// The metadata of `issuer`, with these members in the place of its own.
pub(super) fn metadata(issuer: &str, others: Value) -> Value {
    let mut body = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize?tenant=1"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "revocation_endpoint": format!("{issuer}/revoke"),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    });
    for (name, value) in others.as_object().unwrap() {
        body[name] = value.clone();
    }
    json!({"body": body})
}

pub(super) fn registration(id: &str) -> Value {
    json!({"status": 201, "body": {
        "client_id": id,
        "token_endpoint_auth_method": "none",
        "registration_access_token": format!("manage-{id}"),
        "registration_client_uri": format!("{ISSUER}/register/{id}"),
    }})
}

pub(super) fn tokens(number: &str, scope: &str) -> Value {
    json!({"body": {
        "access_token": format!("at-{number}"),
        "refresh_token": format!("rt-{number}"),
        "token_type": "Bearer",
        "expires_in": 3600,
        "scope": scope,
    }})
}
