//! What is read of challenges is within its bounds, and reads the same once it is written as RFC 9110 says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::connect::{
    Challenge,
    provider::challenge::{Bearer, MAX_CANDIDATES, MAX_SCOPES},
};

fuzz_target!(|input: &[u8]| {
    let lines: Vec<Box<[u8]>> = input.split(|byte| *byte == b'\n').map(Box::from).collect();
    let first = Challenge(lines[..1].to_vec()).bearer();
    let bearer = Challenge(lines).bearer();
    check(&bearer);
    assert!(
        bearer
            .resource_metadata
            .starts_with(&first.resource_metadata)
    );
    assert!(first.scope.is_none() || first.scope == bearer.scope);
    assert!(first.error.is_none() || first.error == bearer.error);
    let text = written(&bearer);
    let again = Challenge(vec![text.as_bytes().into()]).bearer();
    assert_eq!(again, bearer, "{text}");
    if !input.contains(&b'\\') {
        for place in &bearer.resource_metadata {
            let mut windows = input.windows(place.len());
            assert!(
                windows.any(|window| window == place.as_bytes()),
                "{place} is made up"
            );
        }
    }
});

fn check(bearer: &Bearer) {
    assert!(bearer.resource_metadata.len() <= MAX_CANDIDATES);
    for place in &bearer.resource_metadata {
        assert!((1..=2048).contains(&place.len()));
    }
    let scopes = bearer.scope.as_deref();
    assert!(scopes.is_none_or(|scopes| (1..=MAX_SCOPES).contains(&scopes.len())));
    for scope in scopes.unwrap_or_default() {
        assert!(scope.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(!scope.contains(['"', '\\']));
    }
    let is_code = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    assert!(
        bearer
            .error
            .as_deref()
            .is_none_or(|error| error.bytes().all(is_code))
    );
}

fn written(bearer: &Bearer) -> String {
    let quoted = |name: &str, value: &str| {
        let escaped = value.replace('\\', r"\\").replace('"', r#"\""#);
        format!("{name}=\"{escaped}\"")
    };
    let places = bearer.resource_metadata.iter();
    let mut params: Vec<String> = places
        .map(|place| quoted("resource_metadata", place))
        .collect();
    params.extend(
        bearer
            .scope
            .iter()
            .map(|scopes| quoted("scope", &scopes.join(" "))),
    );
    params.extend(bearer.error.iter().map(|error| quoted("error", error)));
    format!("Bearer {}", params.join(", "))
}
