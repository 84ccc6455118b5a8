//! The end of a flow: what the provider sent the browser back with is believed only where it is exactly the answer to a
//! flow of this browser and this user (RFC 6749, section 4.1.2; RFC 9207).

mod end;

use std::sync::Arc;

use zeroize::Zeroizing;

use super::{
    Callback, Finished,
    pending::{self, Found},
};
use crate::{
    connect::{
        Error, Inner, found::discovered, kept::grant, provider::discovery::Discovered, tell,
    },
    deadline::Deadline,
    mcp::visible::invisible,
    policy::Permit,
};
use end::End;

/// Characters of a provider's own words that are shown.
const SHOWN: usize = 256;
/// What an answer may say once.
const ONCE: [&str; 6] = [
    "code",
    "state",
    "iss",
    "error",
    "error_description",
    "error_uri",
];

/// Ends the flow that `callback` answers.
pub(in crate::connect) async fn finish(
    inner: &Arc<Inner>,
    callback: Callback<'_>,
    permit: impl FnOnce(&str) -> Option<Permit> + Send,
    deadline: Deadline,
) -> Result<Finished, Error> {
    let refused = |server: Option<&Arc<str>>, error: Error| {
        tell::refused(inner, callback.owner, server, &error);
        error
    };
    let answer = Answer::read(callback.query).map_err(|error| refused(None, error))?;
    let found = pending::find(inner, answer.state).await;
    let found = found.map_err(|error| refused(None, error))?;
    let server = found.flow.server.clone();
    let refused = |error| refused(Some(&server), error);
    let permit = check(&found, &callback, &answer)
        .and_then(|()| judge(&found, permit))
        .map_err(refused)?;
    still_pinned(inner, &permit, &found)
        .await
        .map_err(refused)?;
    let code = answer.code();
    let (key, pending) = found.take(inner).await.map_err(refused)?;
    let end = End {
        inner: inner.clone(),
        permit,
        key,
        pending,
        deadline,
    };
    // To the end, even where the browser does not wait.
    let task = inner.tasks.spawn_on(end.end(code), &inner.runtime);
    super::super::joined(task).await
}

/// The parameters that count.
struct Answer<'a> {
    state: &'a str,
    code: Option<&'a str>,
    iss: Option<&'a str>,
    error: Option<&'a str>,
    description: Option<&'a str>,
}

impl<'a> Answer<'a> {
    /// Refuses what says anything twice, and what is neither a code nor an error.
    fn read(query: &'a [(String, String)]) -> Result<Self, Error> {
        let all = |wanted| query.iter().filter(move |(name, _)| name == wanted);
        if ONCE.iter().any(|name| all(*name).nth(1).is_some()) {
            return Err(Error::State);
        }
        let one = |name| all(name).next().map(|(_, value)| value.as_str());
        let said = |name| one(name).filter(|value| !value.is_empty());
        let answer = Self {
            state: said("state").ok_or(Error::State)?,
            code: said("code"),
            iss: one("iss"),
            error: said("error"),
            description: said("error_description"),
        };
        let says_anything = answer.code.is_some() || answer.error.is_some();
        says_anything.then_some(answer).ok_or(Error::State)
    }

    /// The code, or what the provider says instead: an error wins.
    fn code(&self) -> Result<Zeroizing<String>, Error> {
        match (self.error, self.code) {
            (None, Some(code)) => Ok(code.to_owned().into()),
            (error, _) => Err(denied(error.unwrap_or_default(), self.description)),
        }
    }
}

/// The browser, the user, and the issuer, in this order, before anything is used up.
fn check(found: &Found, callback: &Callback<'_>, answer: &Answer<'_>) -> Result<(), Error> {
    if found.flow.owner != *callback.owner || !found.is_of_browser(callback.cookies) {
        return Err(Error::Browser);
    }
    let is_right = is_from(&found.pending.discovered, answer.iss);
    is_right.then_some(()).ok_or(Error::IssuerMismatch)
}

/// Byte for byte (RFC 9207, section 2.4). An issuer that says it always names itself must.
fn is_from(discovered: &Discovered, iss: Option<&str>) -> bool {
    match iss {
        Some(iss) => iss == discovered.issuer,
        None => !discovered.iss_supported,
    }
}

/// The server may have moved, or be shut to this user, since the flow began.
fn judge(
    found: &Found,
    permit: impl FnOnce(&str) -> Option<Permit> + Send,
) -> Result<Permit, Error> {
    let same = |permit: &Permit| {
        *permit.owner() == found.flow.owner
            && grant::endpoint(permit.server()) == found.pending.endpoint
    };
    permit(&found.flow.server)
        .filter(same)
        .ok_or_else(|| Error::Unusable {
            server: found.flow.server.clone(),
            what: "policy has changed since this was begun".to_owned(),
        })
}

/// A person may have confirmed another issuer since the flow began.
async fn still_pinned(inner: &Inner, permit: &Permit, found: &Found) -> Result<(), Error> {
    let asked = &found.pending.discovered.issuer;
    match discovered::pinned(inner, permit).await? {
        Some(pinned) if pinned.issuer == *asked => Ok(()),
        Some(pinned) => Err(Error::IssuerChanged {
            server: permit.server().name.clone(),
            pinned: asked.clone(),
            found: pinned.issuer,
        }),
        None => Err(Error::State),
    }
}

/// A refusal in the provider's own words, cut and cleaned.
fn denied(error: &str, description: Option<&str>) -> Error {
    Error::Denied {
        error: cleaned(error),
        description: description.map(cleaned).filter(|text| !text.is_empty()),
    }
}

fn cleaned(text: &str) -> String {
    text.chars()
        .map(|character| {
            if character == '\n' || character == '\t' {
                ' '
            } else {
                character
            }
        })
        .filter(|character| !invisible(*character))
        .take(SHOWN)
        .collect()
}

#[cfg(test)]
mod tests;
