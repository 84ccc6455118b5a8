use super::*;

fn whole() -> Client {
    Client {
        id: "c".into(),
        secret: Some(Zeroizing::new("s3cret".into())),
        auth: TokenAuth::Basic,
        secret_expires_at: Some(5),
        management: Some(Management {
            uri: "https://a/reg/c".into(),
            token: Zeroizing::new("s3cret".into()),
        }),
        origin: Origin::Dynamic,
    }
}

#[test]
fn a_client_shows_no_secret() {
    let shown = format!("{:?} {:?}", whole(), whole().management);
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn a_client_is_read_as_it_was_written() {
    let text = serde_json::to_string(&whole()).unwrap();
    assert!(text.contains(r#""auth":"client_secret_basic""#), "{text}");
    assert_eq!(serde_json::from_str::<Client>(&text).unwrap(), whole());
}

fn given(secret: Option<&str>) -> PreRegistered {
    let secret = secret.map(|text| std::sync::Arc::new(crate::secret::Secret::new(text.into())));
    PreRegistered {
        id: "own".into(),
        secret,
    }
}

#[test]
fn the_operators_client_goes_to_its_own_issuer_only() {
    let knobs = policy::OAuth {
        issuer: Some("https://a".into()),
        ..Default::default()
    };
    let at = |issuer: &str| {
        let discovered = Discovered {
            issuer: issuer.into(),
            ..Default::default()
        };
        pre_registered(&given(None), &discovered, &knobs)
    };
    assert_eq!(at("https://a").unwrap().origin, Origin::PreRegistered);
    assert!(at("https://a/").is_err());
    assert!(at("https://b").is_err());
}

#[test]
fn the_operators_secret_is_sent_as_the_provider_takes_it() {
    let auth = |secret, methods: Option<&[&str]>, token_auth| {
        let knobs = policy::OAuth {
            issuer: Some("https://a".into()),
            token_auth,
            ..Default::default()
        };
        let methods = methods.map(|list| list.iter().map(|word| (*word).to_owned()).collect());
        let discovered = Discovered {
            issuer: "https://a".into(),
            token_auth_methods: methods,
            ..Default::default()
        };
        pre_registered(&given(secret), &discovered, &knobs).map(|client| client.auth)
    };
    let (basic, post) = ("client_secret_basic", "client_secret_post");
    assert_eq!(auth(None, Some(&[basic]), None), Ok(TokenAuth::None));
    assert_eq!(auth(Some("s"), None, None), Ok(TokenAuth::Basic));
    assert_eq!(
        auth(Some("s"), Some(&[post, basic]), None),
        Ok(TokenAuth::Basic)
    );
    assert_eq!(
        auth(Some("s"), Some(&["none", post]), None),
        Ok(TokenAuth::Post)
    );
    assert_eq!(
        auth(Some("s"), None, Some(TokenAuth::Post)),
        Ok(TokenAuth::Post)
    );
    assert!(auth(None, None, Some(TokenAuth::Post)).is_err());
}
