use super::*;
use crate::id::hex;

#[test]
fn a_token_becomes_a_sensitive_header() {
    let credential = Credential::bearer(b"abc.DEF-123~+/=|:").unwrap();
    assert_eq!(credential.name(), "authorization");
    assert_eq!(credential.value(), "Bearer abc.DEF-123~+/=|:");
    assert!(credential.value().is_sensitive());
    assert_eq!(format!("{:?}", credential.value()), "Sensitive");
    let short = Credential::bearer(b"abc").unwrap();
    assert_eq!(
        hex(short.digest()),
        "c355dce96c1612880d11940ffdd9014d386c253e0c3652a6cd06a7226f7bd2b6"
    );
}

#[test]
fn what_cannot_stand_in_a_header_is_no_credential() {
    for token in [
        &b""[..],
        b"a b",
        b" a",
        b"a\r\nb: c",
        b"a\0",
        b"a\x7f",
        b"\xc3\xa9",
        b"a\tb",
    ] {
        assert!(Credential::bearer(token).is_none(), "{token:?}");
    }
    for value in [
        &b""[..],
        b" a",
        b"a ",
        b"a\nb",
        b"a\r",
        b"a\0",
        b"\xff",
        b"a\tb",
    ] {
        let name = HeaderName::from_static("x-api-key");
        assert!(Credential::header(name, value).is_none(), "{value:?}");
    }
    let name = HeaderName::from_static("x-api-key");
    let credential = Credential::header(name, b"Token a:b").unwrap();
    assert_eq!(
        (credential.name().as_str(), credential.value().as_bytes()),
        ("x-api-key", &b"Token a:b"[..])
    );
    assert!(credential.value().is_sensitive());
}

#[test]
fn a_value_has_16_kib_at_most() {
    assert!(Credential::bearer(&[b'a'; (16 << 10) - 7]).is_some());
    assert!(Credential::bearer(&[b'a'; (16 << 10) - 6]).is_none());
}
