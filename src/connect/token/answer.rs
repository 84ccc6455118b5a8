//! What a token endpoint answers, in whatever form, made the one form that is parsed (RFC 6749, section 5).

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::connect::{challenge, fetch::shown};

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

/// The members that are read, as text.
#[derive(Default)]
struct Said {
    access_token: Option<Zeroizing<String>>,
    refresh_token: Option<Zeroizing<String>>,
    token_type: Option<String>,
    expires_in: Option<String>,
    refresh_expires_in: Option<String>,
    scope: Option<String>,
    error: Option<String>,
    description: Option<String>,
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
        _ => {
            tracing::warn!(
                token_type = shown(&kind, 40),
                "an unknown kind of token is used as a bearer token"
            );
            Ok(())
        }
    }
}

impl Said {
    fn read(media_type: &str, body: &[u8]) -> Option<Self> {
        let body = body.trim_ascii_start();
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        match body.trim_ascii_start().first() {
            Some(b'{') => serde_json::from_slice::<Members<'_>>(body)
                .ok()
                .map(Self::from),
            Some(_)
                if media_type.ends_with("x-www-form-urlencoded") || media_type == "text/plain" =>
            {
                Self::from_form(body)
            }
            _ => None,
        }
    }

    fn from_form(body: &[u8]) -> Option<Self> {
        let mut said = Self::default();
        for (name, value) in form_urlencoded::parse(body) {
            let value = value.into_owned();
            let field = match &*name {
                "access_token" | "refresh_token" => {
                    let token = if name == "access_token" {
                        &mut said.access_token
                    } else {
                        &mut said.refresh_token
                    };
                    if token.replace(Zeroizing::new(value)).is_some() {
                        return None;
                    }
                    continue;
                }
                "token_type" => &mut said.token_type,
                "expires_in" => &mut said.expires_in,
                "refresh_expires_in" | "refresh_token_expires_in" => &mut said.refresh_expires_in,
                "scope" => &mut said.scope,
                "error" => &mut said.error,
                "error_description" => &mut said.description,
                _ => continue,
            };
            if field.replace(value).is_some() {
                return None;
            }
        }
        said.error = said.error.and_then(code);
        Some(said)
    }
}

/// The members as they stand in JSON: numbers are not looked at yet, which may be beyond any type.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow)]
    access_token: Option<&'a RawValue>,
    #[serde(borrow)]
    refresh_token: Option<&'a RawValue>,
    #[serde(borrow)]
    token_type: Option<&'a RawValue>,
    #[serde(borrow)]
    expires_in: Option<&'a RawValue>,
    #[serde(borrow)]
    refresh_expires_in: Option<&'a RawValue>,
    #[serde(borrow)]
    refresh_token_expires_in: Option<&'a RawValue>,
    #[serde(borrow)]
    scope: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    error_description: Option<&'a RawValue>,
}

impl From<Members<'_>> for Said {
    fn from(members: Members<'_>) -> Self {
        let (error, inner) = error(members.error);
        Self {
            access_token: members.access_token.and_then(string).map(Zeroizing::new),
            refresh_token: members.refresh_token.and_then(string).map(Zeroizing::new),
            token_type: members.token_type.and_then(string),
            expires_in: members.expires_in.map(plain),
            refresh_expires_in: members
                .refresh_expires_in
                .or(members.refresh_token_expires_in)
                .map(plain),
            scope: members.scope.and_then(list),
            error,
            description: members.error_description.and_then(string).or(inner),
        }
    }
}

/// `error`: its code, or that of an object in its place, and what such an object says.
fn error(member: Option<&RawValue>) -> (Option<String>, Option<String>) {
    #[derive(Deserialize)]
    struct Inner<'a> {
        #[serde(borrow)]
        code: Option<&'a RawValue>,
        #[serde(borrow, rename = "type")]
        kind: Option<&'a RawValue>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
    }
    let Some(member) = member else {
        return (None, None);
    };
    let Ok(inner) = serde_json::from_str::<Inner<'_>>(member.get()) else {
        return (string(member).and_then(code), None);
    };
    let named = [inner.code, inner.kind].into_iter().flatten();
    let named = named.filter_map(string).find_map(code);
    (
        Some(named.unwrap_or_else(|| "unknown_error".to_owned())),
        inner.message.and_then(string),
    )
}

/// A code that can be shown and recorded; `None` for an empty one, which is none.
fn code(text: String) -> Option<String> {
    match text.trim() {
        "" => None,
        trimmed if challenge::is_code(trimmed) => Some(trimmed.to_owned()),
        _ => Some("unknown_error".to_owned()),
    }
}

fn string(member: &RawValue) -> Option<String> {
    serde_json::from_str(member.get()).ok()
}

/// A string's text, or any other value as it is written.
fn plain(member: &RawValue) -> String {
    string(member).unwrap_or_else(|| member.get().to_owned())
}

/// A list of words as one text, however it is written.
fn list(member: &RawValue) -> Option<String> {
    let words = || serde_json::from_str::<Vec<String>>(member.get()).ok();
    string(member).or_else(|| Some(words()?.join(" ")))
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
