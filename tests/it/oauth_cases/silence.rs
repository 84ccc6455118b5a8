//! Codes, verifiers, tokens and client secrets show up in no log and in no printed error, whatever is answered.

use serde_json::{Value, json};
use tollgate::connect::{
    Terms,
    provider::{discovery::Discovered, register, revoke, token},
};

use super::*;
use crate::support::log::Log;

/// Part of every secret.
const MARK: &str = "s3cret";

/// Answers that hold secrets, in forms that are taken, refused and not understood.
fn answers() -> Vec<Value> {
    let tokens = json!({
        "access_token": "s3cret-at", "refresh_token": "s3cret-rt", "token_type": "s3cret-type", "scope": "read",
    });
    let refusal = json!({ "error": "invalid_grant", "error_description": "s3cret-at is over" });
    let client = json!({ "client_id": "c", "client_secret": "s3cret", "token_endpoint_auth_method": "other" });
    vec![
        json!({ "body": tokens }),
        json!({ "body": tokens, "status": 503 }),
        json!({ "body": tokens, "status": 403 }),
        json!({ "body": refusal, "status": 400 }),
        json!({ "body": { "error": "s3cret?" } }),
        json!({ "body": { "access_token": "s3cret at" } }),
        json!({ "body": "<html>s3cret", "type": "text/html" }),
        json!({ "body": "access_token=s3cret&access_token=s3cret", "type": "application/x-www-form-urlencoded" }),
        json!({ "body": client, "status": 201 }),
        json!({ "status": 307, "headers": { "location": "http://evil.test/?code=s3cret" } }),
        json!({ "closes": true }),
    ]
}

/// Everything that shows a secret to the endpoint of `url`, and what is printed of what comes back.
async fn printed(egress: &Egress, permit: &Permit, url: &str) -> String {
    let deadline = Deadline::after(Duration::from_secs(20));
    let client = register::Client {
        id: "c".into(),
        secret: Some("s3cret-client".to_owned().into()),
        auth: tollgate::policy::TokenAuth::Post,
        secret_expires_at: None,
        management: None,
        origin: register::Origin::Dynamic,
    };
    let found = Discovered {
        token_endpoint: url.to_owned(),
        registration_endpoint: Some(url.to_owned()),
        ..Discovered::default()
    };
    let code = token::Code {
        code: "s3cret-code",
        verifier: "s3cret-verifier-of-enough-characters-in-one-row",
        redirect_uri: "https://gate.test/oauth/callback",
        resource: None,
    };
    let refresh = token::Refresh {
        token: "s3cret-old",
        scopes: None,
        resource: None,
    };
    let exchanged = token::exchange(egress, permit, &client, &found, code, deadline).await;
    let refreshed = token::refresh(egress, permit, &client, url, refresh, deadline).await;
    let (old, last) = (Some("s3cret-old"), Some("s3cret-last"));
    revoke::revoke(egress, permit, &client, Some(url), old, last).await;
    let registered = register::client(egress, permit, &found, &Terms::default(), deadline).await;
    let words = [&exchanged, &refreshed].map(|result| match result {
        Ok(_) => String::new(),
        Err(failure) => failure.to_string(),
    });
    let refused = registered.as_ref().err().map(ToString::to_string);
    format!("{client:?} {exchanged:?} {refreshed:?} {registered:?} {words:?} {refused:?}")
}

#[tokio::test]
async fn no_secret_is_logged_or_printed() {
    let (log, _guard) = Log::begin();
    let provider = Provider::start(None, Answers::new()).await;
    let (maker, origin) = local(&provider, true);
    let permit = maker.granting_oauth("127.0.0.1").permit();
    let egress = direct();
    let url = format!("{origin}/endpoint");
    for answer in answers() {
        let answer = vec![serde_json::from_value(answer).unwrap()];
        provider.answer(Answers::from([(format!("POST {url}"), answer)]));
        let printed = printed(&egress, &permit, &url).await;
        assert!(!printed.contains(MARK), "{printed}");
    }
    assert!(
        provider.asked().len() >= 4 * answers().len(),
        "all was sent"
    );
    log.never_says(MARK);
}
