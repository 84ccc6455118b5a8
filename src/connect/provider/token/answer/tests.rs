use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

/// The one form of an answer; `null` where it has none.
fn read(status: u16, media_type: &str, body: &str) -> Value {
    let status = StatusCode::from_u16(status).unwrap();
    match canonical(status, media_type, body.as_bytes()) {
        Ok(Canonical::Granted(body)) => serde_json::from_slice(&body).unwrap(),
        Ok(Canonical::Refused(body)) => serde_json::from_slice(&body).unwrap(),
        Err(Unclear::Neither) => Value::Null,
        Err(Unclear::TokenType(kind)) => Value::String(kind),
    }
}

fn granted(rest: &str) -> Value {
    let form = read(200, JSON, &format!(r#"{{"access_token":"at"{rest}}}"#));
    assert_eq!(
        (&form["access_token"], &form["token_type"]),
        (&json!("at"), &json!("bearer"))
    );
    form
}

#[test]
fn a_time_to_live_is_read_in_every_form() {
    for (text, seconds) in [
        ("3600", json!(3600)),
        (r#""3600""#, json!(3600)),
        ("60.0", json!(60)),
        ("59.9", json!(59)),
        (r#""60.5""#, json!(60)),
        ("-1", Value::Null),
        ("0", Value::Null),
        ("null", Value::Null),
        ("1e20", json!(31_536_000)),
        ("1e400", json!(31_536_000)),
        (r#""soon""#, Value::Null),
        ("[1]", Value::Null),
        (r#""NaN""#, Value::Null),
    ] {
        assert_eq!(
            granted(&format!(r#","expires_in":{text}"#))["expires_in"],
            seconds,
            "{text}"
        );
    }
    assert_eq!(granted("")["expires_in"], Value::Null, "never invented");
}

#[test]
fn scopes_are_read_in_every_form() {
    for (text, scopes) in [
        (r#""a b""#, json!(["a", "b"])),
        (r#""a,b""#, json!(["a", "b"])),
        (r#"["a","b"]"#, json!(["a", "b"])),
        (r#""""#, Value::Null),
        ("null", Value::Null),
        ("7", Value::Null),
    ] {
        assert_eq!(
            granted(&format!(r#","scope":{text}"#))["scopes"],
            scopes,
            "{text}"
        );
    }
}

#[test]
fn a_refresh_token_is_text_or_none() {
    assert_eq!(
        granted(r#","refresh_token":"rt""#)["refresh_token"],
        json!("rt")
    );
    for none in [
        r#","refresh_token":"""#,
        r#","refresh_token":null"#,
        r#","refresh_token":"a\nb""#,
    ] {
        assert_eq!(granted(none)["refresh_token"], Value::Null, "{none}");
    }
    for name in ["refresh_expires_in", "refresh_token_expires_in"] {
        assert_eq!(
            granted(&format!(r#","{name}":"86400""#))["refresh_expires_in"],
            json!(86400)
        );
    }
}

#[test]
fn a_kind_of_token_is_bearer_unless_it_needs_a_proof() {
    for kind in ["bearer", "Bearer", "BEARER", "user", ""] {
        granted(&format!(r#","token_type":"{kind}""#));
    }
    for kind in ["DPoP", "dpop", "mac", "MAC"] {
        let body = format!(r#"{{"access_token":"at","token_type":"{kind}"}}"#);
        assert_eq!(read(200, JSON, &body), json!(kind.to_ascii_lowercase()));
    }
}

#[test]
fn an_error_counts_whatever_the_status_and_the_form() {
    let refused = json!({"error": "invalid_grant"});
    for (status, media_type, body) in [
        (400, JSON, r#"{"error":"invalid_grant"}"#),
        (200, JSON, r#"{"error":"invalid_grant"}"#),
        (
            200,
            JSON,
            r#"{"access_token":"at","error":"invalid_grant"}"#,
        ),
        (200, FORM, "error=invalid_grant"),
        (401, "text/plain", "\u{feff}{\"error\":\"invalid_grant\"}"),
        (400, JSON, r#"{"error":{"code":"invalid_grant"}}"#),
    ] {
        assert_eq!(read(status, media_type, body), refused, "{body}");
    }
    let told = r#"{"error":"x y","error_description":"<b>\u0007no\u202e\nmore"}"#;
    let told = read(400, JSON, told);
    assert_eq!(
        told,
        json!({"error": "unknown_error", "error_description": "<b>no more"})
    );
    let long = format!(
        r#"{{"error":"e","error_description":"{}"}}"#,
        "a".repeat(1000)
    );
    let long = read(400, JSON, &long);
    assert_eq!(
        long["error_description"].as_str().unwrap().chars().count(),
        257
    );
    let inner = r#"{"error":{"type":"bad","message":"told"}}"#;
    assert_eq!(
        read(400, JSON, inner),
        json!({"error": "bad", "error_description": "told"})
    );
}

#[test]
fn success_is_any_2xx_and_json_is_recognised_by_itself() {
    let at = json!({"access_token": "at", "token_type": "bearer"});
    for (status, media_type, body) in [
        (201, JSON, r#"{"access_token":"at"}"#),
        (200, "text/plain", r#" {"access_token":"at"}"#),
        (200, "text/html", r#"{"access_token":"at"}"#),
        (200, "", "\u{feff}{\"access_token\":\"at\",\"error\":null}"),
        (200, FORM, "access_token=at&token_type=bearer&expires_in="),
        (200, "text/plain", "access_token=at"),
        (200, JSON, r#"{"access_token":"at","error":""}"#),
    ] {
        assert_eq!(read(status, media_type, body), at, "{body}");
    }
}

#[test]
fn what_is_neither_is_not_guessed_at() {
    for (status, media_type, body) in [
        (200, "text/html", "<html>access_token=at</html>"),
        (400, JSON, r#"{"access_token":"at"}"#),
        (200, JSON, r#"{"access_token":""}"#),
        (200, JSON, r#"{"access_token":"a b"}"#),
        (200, JSON, r#"{"access_token":7}"#),
        (200, JSON, r#"{"access_token":"a","access_token":"b"}"#),
        (200, FORM, "access_token=a&access_token=b"),
        (200, JSON, r#"["access_token"]"#),
        (200, JSON, "{"),
        (200, JSON, ""),
    ] {
        assert_eq!(read(status, media_type, body), Value::Null, "{body}");
    }
    let long = format!(r#"{{"access_token":"{}"}}"#, "a".repeat(MAX_TOKEN + 1));
    assert_eq!(read(200, JSON, &long), Value::Null);
}

proptest! {
    #[test]
    fn any_answer_is_read_without_harm(
        status in prop::sample::select(vec![200u16, 201, 400, 401]),
        media_type in prop::sample::select(vec![JSON, FORM, "text/plain", ""]),
        body in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            "[{]\"(access_token|expires_in|scope|error)\":[-0-9a-z\"\\[\\]{}., ]{0,20}[}]".prop_map(String::into_bytes),
        ],
    ) {
        let _ = canonical(StatusCode::from_u16(status).unwrap(), media_type, &body);
    }
}
