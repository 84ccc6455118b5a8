use proptest::prelude::*;

use super::*;

fn read(lines: &[&str]) -> Bearer {
    Challenge(lines.iter().map(|line| line.as_bytes().into()).collect()).bearer()
}

fn places(lines: &[&str]) -> Vec<String> {
    read(lines).resource_metadata
}

#[test]
fn all_three_parameters_are_read() {
    let line = r#"Bearer realm="r", error="insufficient_scope", scope="files:read  files:write", resource_metadata="https://h/p?a=b,c""#;
    assert_eq!(
        read(&[line]),
        Bearer {
            resource_metadata: vec!["https://h/p?a=b,c".into()],
            scope: Some(vec!["files:read".into(), "files:write".into()]),
            error: Some("insufficient_scope".into()),
        }
    );
}

#[test]
fn bearer_is_found_among_other_challenges_and_lines() {
    for lines in [
        &[r#"Basic realm="x", Bearer resource_metadata="https://h/m""#][..],
        &[r#"bearer resource_metadata=https://h/m"#],
        &["Negotiate", r#"BEARER resource_metadata="https://h/m""#],
        &[r#"Negotiate YWJj==, Bearer resource_metadata="https://h/m""#],
        &[r#"NTLM, Digest realm="a, Bearer b=\"c\"", Bearer resource_metadata = "https://h/m""#],
        &[r#"Bearer realm="x" resource_metadata="https://h/m""#],
        &[r#", ,Bearer , resource_metadata="https:\/\/h/m""#],
    ] {
        assert_eq!(places(lines), ["https://h/m"], "{lines:?}");
    }
}

#[test]
fn parameters_of_other_schemes_do_not_count() {
    for lines in [
        &[r#"Basic resource_metadata="https://h/m""#][..],
        &[r#"Bearer abc=, DPoP resource_metadata="https://h/m""#],
        &[r#"resource_metadata="https://h/m""#],
        &[r#"Bearer realm="Bearer resource_metadata=https://h/m""#],
        &[r#""Bearer resource_metadata=https://h/m""#],
        &[],
    ] {
        assert_eq!(read(lines), Bearer::default(), "{lines:?}");
    }
}

#[test]
fn a_doubled_place_is_two_candidates_in_order() {
    let line = r#"Bearer resource_metadata="https://h/a", resource_metadata="https://h/b", resource_metadata="https://h/a""#;
    assert_eq!(places(&[line]), ["https://h/a", "https://h/b"]);
    let other = r#"Bearer resource_metadata="https://h/c""#;
    assert_eq!(
        places(&[line, other]),
        ["https://h/a", "https://h/b", "https://h/c"]
    );
}

#[test]
fn a_quotation_without_an_end_is_no_value() {
    for line in [
        r#"Bearer resource_metadata="https://h/m"#,
        r#"Bearer resource_metadata="https://h/m\""#,
        r#"Bearer error="invalid_token, resource_metadata=https://h/m"#,
    ] {
        assert_eq!(read(&[line]), Bearer::default(), "{line}");
    }
    let next = r#"Bearer resource_metadata="https://h/m""#;
    assert_eq!(places(&[r#"Bearer realm="open"#, next]), ["https://h/m"]);
}

#[test]
fn values_that_cannot_be_used_are_left_out() {
    let long = format!(
        "Bearer resource_metadata=\"https://h/{}\"",
        "a".repeat(2048)
    );
    assert_eq!(read(&[&long]), Bearer::default());
    let line = r#"Bearer error="<b>", error="invalid_token", scope="", scope="a\\ b", scope="c""#;
    let bearer = read(&[line]);
    assert_eq!(bearer.error.as_deref(), Some("invalid_token"));
    assert_eq!(bearer.scope, Some(vec!["b".into()]));
    let bytes = Challenge(vec![b"Bearer scope=\"\xff\", error=x".to_vec().into()]).bearer();
    assert_eq!((bytes.scope, bytes.error), (None, Some("x".into())));
}

#[test]
fn what_one_answer_gives_is_bounded() {
    let many: Vec<String> = (0..20)
        .map(|number| format!("Bearer resource_metadata=\"https://h/{number}\""))
        .collect();
    let lines: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(places(&lines).len(), 8);
    let scopes: Vec<String> = (0..200).map(|number| format!("s{number}")).collect();
    let line = format!("Bearer scope=\"{}\"", scopes.join(" "));
    assert_eq!(read(&[&line]).scope.unwrap().len(), 64);
}

/// As RFC 9110, section 5.6.4 says it.
fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', r"\\").replace('"', r#"\""#);
    format!("\"{escaped}\"")
}

proptest! {
    #[test]
    fn what_was_written_is_read_again(
        realm in "[ -~]{0,20}",
        place in "[!-~]{1,40}",
        other in "[ -~]{0,20}",
        doubled in any::<bool>(),
    ) {
        let challenge = format!(
            "Digest realm={}, nonce=abc, Bearer realm={}, resource_metadata={}",
            quoted(&other), quoted(&realm), quoted(&place),
        );
        let lines = if doubled { vec![challenge.as_str(); 2] } else { vec![challenge.as_str()] };
        prop_assert_eq!(places(&lines), vec![place]);
    }

    #[test]
    fn any_bytes_are_read_within_the_bounds(lines in prop::collection::vec(
        prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"Bearer scope=\", \\".to_vec())], 0..200),
        0..4,
    )) {
        let bearer = Challenge(lines.into_iter().map(Into::into).collect()).bearer();
        prop_assert!(bearer.resource_metadata.len() <= MAX_CANDIDATES);
        for scope in bearer.scope.iter().flatten() {
            prop_assert!(is_scope(scope));
        }
    }
}
