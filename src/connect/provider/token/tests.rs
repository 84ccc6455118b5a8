use super::*;

#[test]
fn nothing_secret_is_shown() {
    let tokens = Tokens {
        access: Zeroizing::new("s3cret-a".into()),
        refresh: Some(Zeroizing::new("s3cret-r".into())),
        expires_in: Some(60),
        refresh_expires_in: None,
        scopes: Some(vec!["read".into()]),
    };
    let failure = Failure::Terminal {
        error: "invalid_grant".into(),
        description: Some("s3cret-d".into()),
        client_dead: false,
    };
    assert_eq!(
        format!("{tokens:?}"),
        "Tokens { expires_in: Some(60), refreshable: true, .. }"
    );
    let shown = format!("{failure:?} {failure}");
    assert!(shown.contains("invalid_grant"), "{shown}");
    assert!(!shown.contains("s3cret"), "{shown}");
}
