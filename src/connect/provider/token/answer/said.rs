//! The members of an answer, whether they stand in JSON or in a form.

use serde::Deserialize;
use serde_json::value::RawValue;
use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::connect::provider::challenge;

/// The members that are read, as text.
#[derive(Default)]
pub(super) struct Said {
    pub(super) access_token: Option<Zeroizing<String>>,
    pub(super) refresh_token: Option<Zeroizing<String>>,
    pub(super) token_type: Option<String>,
    pub(super) expires_in: Option<String>,
    pub(super) refresh_expires_in: Option<String>,
    pub(super) scope: Option<String>,
    pub(super) error: Option<String>,
    pub(super) description: Option<String>,
}

impl Said {
    /// Reads an answer as JSON or as a form; `None` where it is neither, or says something twice.
    pub(super) fn read(media_type: &str, body: &[u8]) -> Option<Self> {
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
            let is_first = match &*name {
                "access_token" => said.access_token.replace(value.into()).is_none(),
                "refresh_token" => said.refresh_token.replace(value.into()).is_none(),
                "token_type" => said.token_type.replace(value).is_none(),
                "expires_in" => said.expires_in.replace(value).is_none(),
                "refresh_expires_in" | "refresh_token_expires_in" => {
                    said.refresh_expires_in.replace(value).is_none()
                }
                "scope" => said.scope.replace(value).is_none(),
                "error" => said.error.replace(value).is_none(),
                "error_description" => said.description.replace(value).is_none(),
                _ => true,
            };
            if !is_first {
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
