use proptest::prelude::*;

use super::*;

/// User and key that a header value holds, or the error.
fn read(value: &str) -> Result<(Option<String>, String), CredentialError> {
    let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
    Credential::read(Some(&value)).map(|credential| {
        let key = credential.key.expose().to_vec();
        (credential.user, String::from_utf8(key).unwrap())
    })
}

fn basic(plain: &[u8]) -> String {
    format!("Basic {}", STANDARD.encode(plain))
}

#[test]
fn basic_and_bearer_give_a_user_and_a_key() {
    let key = |user: Option<&str>, key: &str| Ok((user.map(str::to_owned), key.to_owned()));
    // base64 of `:tg_key`, of `ada:tg_key` and of `ada@example.net:a:b`.
    assert_eq!(read("Basic OnRnX2tleQ=="), key(None, "tg_key"));
    assert_eq!(read("Basic YWRhOnRnX2tleQ=="), key(Some("ada"), "tg_key"));
    assert_eq!(
        read("bASIC   YWRhOnRnX2tleQ==  "),
        key(Some("ada"), "tg_key")
    );
    assert_eq!(
        read("Basic YWRhQGV4YW1wbGUubmV0OmE6Yg=="),
        key(Some("ada@example.net"), "a:b")
    );
    assert_eq!(read("Bearer tg_key"), key(None, "tg_key"));
    assert_eq!(read("BEARER  tg_key "), key(None, "tg_key"));
}

#[test]
fn what_is_no_credential_is_named() {
    use CredentialError::{Basic, Key, NoKey, Scheme, User};
    let (long_user, long_key) = (
        ["u".repeat(257), ":k".into()].concat(),
        ":".to_owned() + &"k".repeat(257),
    );
    for (value, error) in [
        (String::new(), Scheme),
        ("tg_key".into(), Scheme),
        ("Digest username=x".into(), Scheme),
        ("Basic\tOnRnX2tleQ==".into(), Scheme),
        ("Basic".into(), Basic),
        ("Basic ".into(), Basic),
        ("Basic OnRnX2tleQ".into(), Basic),
        ("Basic OnRnX2tleR==".into(), Basic),
        ("Basic OnRn X2tleQ==".into(), Basic),
        ("Basic :tg_key".into(), Basic),
        (basic(b"tg_key"), Basic),
        (basic(&[b'k'; 10_000]), Basic),
        (basic(b"tg_key:"), NoKey),
        (basic(b":"), NoKey),
        ("Bearer".into(), NoKey),
        ("Bearer  ".into(), NoKey),
        (basic(b":tg key"), Key),
        (basic(b":tg_key\n"), Key),
        (basic(b":tg_\xff"), Key),
        ("Bearer tg_\u{e9}".into(), Key),
        ("Bearer a b".into(), Key),
        (basic(long_key.as_bytes()), Key),
        (basic(long_user.as_bytes()), User),
        (basic(b"a b:tg_key"), User),
        (basic("é:tg_key".as_bytes()), User),
    ] {
        assert_eq!(read(&value), Err(error), "{value:?}");
    }
    assert_eq!(
        Credential::read(None).unwrap_err(),
        CredentialError::Missing
    );
}

#[test]
fn the_longest_are_read() {
    let (user, key) = ("u".repeat(256), "k".repeat(256));
    let value = basic(format!("{user}:{key}").as_bytes());
    assert_eq!(read(&value), Ok((Some(user), key)));
}

#[test]
fn refusals_ask_for_a_credential_and_never_show_one() {
    let missing = Refusal::from(CredentialError::Missing);
    assert_eq!(missing.code.status(), 407);
    assert_eq!(
        missing.text(),
        "tunnel.credential_missing: the request carries no `Proxy-Authorization`; put the agent key and its user \
         into the proxy URL, http://USER:KEY@HOST:PORT, or send it as `Proxy-Authorization: Bearer KEY`"
    );
    let invalid = Refusal::from(CredentialError::NoKey);
    assert_eq!(
        (invalid.code.as_str(), invalid.code.status()),
        ("tunnel.credential_invalid", 407)
    );
    let value = HeaderValue::from_static("Basic YWRhOnRnX2tleQ==");
    assert_eq!(
        format!("{:?}", Credential::read(Some(&value)).unwrap()),
        r#"Credential { user: Some("ada"), key: Secret(…) }"#
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_client_encodes_is_what_is_read(user in "[!-9;-~]{0,40}", key in "[!-~]{1,60}") {
        let expected = (Some(user.clone()).filter(|user| !user.is_empty()), key.clone());
        prop_assert_eq!(read(&basic(format!("{user}:{key}").as_bytes())), Ok(expected));
        prop_assert_eq!(read(&format!("Bearer {key}")), Ok((None, key)));
    }

    #[test]
    fn nothing_panics(scheme in "(Basic |Bearer |[ -~]{0,8})", rest in proptest::collection::vec(32_u8..=126, 0..900)) {
        let value = [scheme.as_bytes(), &rest].concat();
        let _ = Credential::read(Some(&HeaderValue::from_bytes(&value).unwrap()));
    }

    #[test]
    fn no_plain_text_panics(plain in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = read(&basic(&plain));
    }
}
