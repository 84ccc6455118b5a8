use super::*;

fn query(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

#[test]
fn what_is_said_twice_or_not_at_all_is_no_answer() {
    for wrong in [
        &[][..],
        &[("code", "c")],
        &[("state", "s")],
        &[("state", ""), ("code", "c")],
        &[("state", "s"), ("code", "")],
        &[("state", "s"), ("error", "")],
        &[("state", "s"), ("code", "c"), ("code", "c")],
        &[("state", "s"), ("code", "c"), ("state", "s")],
        &[("state", "s"), ("code", "c"), ("iss", "i"), ("iss", "i")],
        &[("state", "s"), ("error", "e"), ("error", "e")],
        &[
            ("state", "s"),
            ("error", "e"),
            ("error_description", "d"),
            ("error_description", "d"),
        ],
    ] {
        let query = query(wrong);
        assert!(
            matches!(Answer::read(&query), Err(Error::State)),
            "{wrong:?}"
        );
    }
}

#[test]
fn a_code_is_taken_and_an_error_wins_over_it() {
    let right = query(&[
        ("code", "c"),
        ("state", "s"),
        ("session_state", "x"),
        ("x", "1"),
    ]);
    let answer = Answer::read(&right).unwrap();
    assert_eq!((answer.state, answer.iss), ("s", None));
    assert_eq!(answer.code().unwrap().as_str(), "c");

    let both = query(&[
        ("code", "c"),
        ("state", "s"),
        ("error", "access_denied"),
        ("error_description", "no\u{1b}[31m\nway\u{202e}<b>"),
    ]);
    let denied = Answer::read(&both).unwrap().code().unwrap_err();
    let Error::Denied { error, description } = denied else {
        panic!("{denied}");
    };
    assert_eq!(error, "access_denied");
    assert_eq!(description.as_deref(), Some("no[31m way<b>"));
}

#[test]
fn a_providers_words_are_cut() {
    let Error::Denied { error, description } = denied(&"ü".repeat(300), Some("\0\r")) else {
        panic!("denied");
    };
    assert_eq!(error, "ü".repeat(256));
    assert_eq!(description, None);
}

#[test]
fn the_issuer_is_compared_byte_for_byte() {
    let discovered = |iss_supported| Discovered {
        issuer: "https://as.example/tenant".to_owned(),
        iss_supported,
        ..Discovered::default()
    };
    for (iss, where_promised, where_not) in [
        (Some("https://as.example/tenant"), true, true),
        (Some("https://as.example/tenant/"), false, false),
        (Some("https://AS.example/tenant"), false, false),
        (Some("https://as.example:443/tenant"), false, false),
        (Some("https://as.example/%74enant"), false, false),
        (Some("https://other.example"), false, false),
        (Some(""), false, false),
        (None, false, true),
    ] {
        assert_eq!(is_from(&discovered(true), iss), where_promised, "{iss:?}");
        assert_eq!(is_from(&discovered(false), iss), where_not, "{iss:?}");
    }
}
