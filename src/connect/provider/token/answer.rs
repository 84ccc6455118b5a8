//! What a token endpoint answers, in whatever form, made the one form that is parsed (RFC 6749, section 5).

mod said;

use http::StatusCode;
use serde::Serialize;
use zeroize::Zeroizing;

use self::said::Said;

use crate::connect::provider::{challenge, fetch::shown};

/// The longest token that is taken.
const MAX_TOKEN: usize = 32 * 1024;

/// The longest that an access token is believed to last, in seconds.
const YEAR: u64 = 365 * 24 * 60 * 60;

/// An answer in the one form: its body is JSON with the members of the RFC, each of its own type.
pub(super) enum Canonical {
    /// Tokens.
    Granted(Zeroizing<Vec<u8>>),
    /// A refusal with its `error`.
    Refused(Vec<u8>),
}

/// An answer that has no such form.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unclear {
    /// It is neither tokens nor a refusal.
    Neither,
    /// Its tokens are not for a `Bearer` header.
    TokenType(String),
}

#[derive(Serialize)]
struct Granted<'a> {
    access_token: &'a str,
    token_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_expires_in: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scopes: Option<Vec<String>>,
}

#[derive(Serialize)]
struct Refused<'a> {
    error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_description: Option<String>,
}

/// Reads an answer. An `error` counts whatever the status is; tokens only with a status of success.
pub(super) fn canonical(
    status: StatusCode,
    media_type: &str,
    body: &[u8],
) -> Result<Canonical, Unclear> {
    let said = Said::read(media_type, body).ok_or(Unclear::Neither)?;
    if let Some(error) = &said.error {
        let refused = Refused {
            error,
            error_description: said.description.as_deref().map(|text| shown(text, 256)),
        };
        let body = serde_json::to_vec(&refused).expect("texts can be written");
        return Ok(Canonical::Refused(body));
    }
    let token = said.access_token.as_deref().filter(|token| is_token(token));
    let (true, Some(access_token)) = (status.is_success(), token) else {
        return Err(Unclear::Neither);
    };
    check_type(said.token_type.as_deref())?;
    let granted = Granted {
        access_token,
        token_type: "bearer",
        expires_in: said.expires_in.as_deref().and_then(seconds),
        refresh_token: said
            .refresh_token
            .as_deref()
            .map(String::as_str)
            .filter(|token| is_token(token)),
        refresh_expires_in: said.refresh_expires_in.as_deref().and_then(seconds),
        scopes: said.scope.as_deref().and_then(scopes),
    };
    let mut body = Zeroizing::new(Vec::with_capacity(body.len() + 256));
    serde_json::to_writer(&mut *body, &granted).expect("texts and numbers can be written");
    Ok(Canonical::Granted(body))
}

/// `token_type`, in any case. What is absent or unknown is taken for `Bearer`; what needs a proof of its own cannot be
/// used.
fn check_type(said: Option<&str>) -> Result<(), Unclear> {
    let kind = said.unwrap_or("bearer").to_ascii_lowercase();
    match kind.as_str() {
        "bearer" => Ok(()),
        "dpop" | "mac" => Err(Unclear::TokenType(kind)),
        // What stands there may be anything, and is not logged.
        _ => {
            tracing::warn!("a token of an unknown kind is used as a bearer token");
            Ok(())
        }
    }
}

/// Scopes as granted; some providers put commas between them. `None` where nothing is said.
fn scopes(text: &str) -> Option<Vec<String>> {
    let scopes: Vec<String> = challenge::scopes(&text.replace(',', " ")).collect();
    (!scopes.is_empty()).then_some(scopes)
}

/// A time to live, whole seconds of it; `None` where that says nothing.
fn seconds(text: &str) -> Option<u64> {
    let seconds: f64 = text.trim().parse().ok()?;
    // A float turned into an integer stays within its bounds, and what is no number becomes 0.
    let seconds = (seconds as u64).min(YEAR);
    (seconds > 0).then_some(seconds)
}

/// Whether it can be sent again: visible ASCII (RFC 6749, appendix A.12).
fn is_token(text: &str) -> bool {
    (1..=MAX_TOKEN).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests;
