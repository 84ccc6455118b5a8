use super::*;

fn client(asked: TokenAuth, text: &str) -> Result<Client, &'static str> {
    let registered: Registered = serde_json::from_str(text).unwrap();
    registered.into_client(asked)
}

fn listed(methods: &[&str]) -> Option<TokenAuth> {
    let methods: Vec<String> = methods.iter().map(|method| (*method).to_owned()).collect();
    method(Some(&methods))
}

#[test]
fn a_method_is_chosen_from_those_that_are_listed() {
    assert_eq!(
        listed(&["client_secret_basic", "client_secret_post", "none"]),
        Some(TokenAuth::None)
    );
    assert_eq!(
        listed(&["client_secret_post", "client_secret_basic"]),
        Some(TokenAuth::Basic)
    );
    assert_eq!(
        listed(&["private_key_jwt", "client_secret_post"]),
        Some(TokenAuth::Post)
    );
    assert_eq!(listed(&["private_key_jwt"]), None);
    assert_eq!(method(None), Some(TokenAuth::Basic));
}

#[test]
fn the_kind_of_application_is_that_of_the_callback() {
    for (redirect, kind) in [
        ("https://gate.example.com/oauth/callback", "web"),
        ("https://gate.example.com:8703/oauth/callback", "web"),
        ("http://127.0.0.1:8703/oauth/callback", "native"),
        ("https://127.0.0.1:8703/oauth/callback", "native"),
        ("https://[::1]:8703/oauth/callback", "native"),
        ("https://localhost/oauth/callback", "native"),
        ("http://gate.example.com/oauth/callback", "native"),
    ] {
        assert_eq!(application_type(redirect), kind, "{redirect}");
    }
}

#[test]
fn what_is_not_answered_stands_as_asked() {
    let public = client(TokenAuth::None, r#"{"client_id":"c"}"#).unwrap();
    assert_eq!(
        (public.auth, public.secret.is_none()),
        (TokenAuth::None, true)
    );
    let answer =
        r#"{"client_id":"c","client_secret":"s","client_secret_expires_at":"0","grant_types":[]}"#;
    let secret = client(TokenAuth::Post, answer).unwrap();
    assert_eq!(
        (secret.auth, secret.secret_expires_at),
        (TokenAuth::Post, None)
    );
}

#[test]
fn the_answered_method_counts_where_it_is_known() {
    let basic = r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"client_secret_basic"}"#;
    assert_eq!(
        client(TokenAuth::None, basic).unwrap().auth,
        TokenAuth::Basic
    );
    let kept = r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"none"}"#;
    let kept = client(TokenAuth::None, kept).unwrap();
    assert_eq!(
        (kept.auth, kept.secret.as_deref().map(String::as_str)),
        (TokenAuth::None, Some("s"))
    );
    for unfit in [
        r#"{"client_id":"c","token_endpoint_auth_method":"private_key_jwt"}"#,
        r#"{"client_id":"c","token_endpoint_auth_method":"client_secret_post"}"#,
        r#"{"client_id":"c","client_secret":"","token_endpoint_auth_method":"client_secret_basic"}"#,
        r#"{"client_id":""}"#,
        "{}",
    ] {
        assert!(client(TokenAuth::None, unfit).is_err(), "{unfit}");
    }
}

#[test]
fn management_and_the_end_of_a_secret_are_kept() {
    let answer = r#"{"client_id":"c","client_secret":"s","client_secret_expires_at":1900000000,
        "registration_client_uri":"https://a/reg/c","registration_access_token":"m"}"#;
    let client = client(TokenAuth::Basic, answer).unwrap();
    assert_eq!(client.secret_expires_at, Some(1_900_000_000));
    assert_eq!(client.management.unwrap().uri, "https://a/reg/c");
}
