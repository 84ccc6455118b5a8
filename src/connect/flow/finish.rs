//! The end of a flow: what the provider sent the browser back with is believed only where it is exactly the answer to a
//! flow of this browser and this user (RFC 6749, section 4.1.2; RFC 9207).

use std::sync::Arc;

use zeroize::Zeroizing;

use super::{Callback, Finished};
use crate::{
    audit::{Kind, OutcomeKind},
    connect::{
        Error, GrantKey, GrantRow, GrantState, Inner, clients, disconnect,
        discovery::Discovered,
        grant::{self, Payload},
        pending::{self, Found, Pending},
        return_to::{self, Status},
        tell,
        token::{self, Code, Failure, Tokens},
    },
    deadline::Deadline,
    id,
    mcp::visible::invisible,
    policy::Permit,
};

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
    let permit = check(&found, &callback, &answer)
        .and_then(|()| judge(&found, permit))
        .map_err(|error| refused(Some(&server), error))?;
    let code = answer.code();
    let taken = found.take(inner).await;
    let (key, pending) = taken.map_err(|error| refused(Some(&server), error))?;
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

/// A flow that was used up.
struct End {
    inner: Arc<Inner>,
    permit: Permit,
    key: GrantKey,
    pending: Pending,
    deadline: Deadline,
}

impl End {
    async fn end(self, code: Result<Zeroizing<String>, Error>) -> Result<Finished, Error> {
        let result = match code {
            Ok(code) => self.exchange(&code).await,
            Err(denied) => {
                self.doubt(&denied).await;
                Err(denied)
            }
        };
        let server = self.key.server.clone();
        let status = match &result {
            Ok(()) => Status::Connected,
            Err(Error::Denied { .. }) => Status::Denied,
            Err(_) => Status::Failed,
        };
        if let Err(error) = &result {
            tell::refused(&self.inner, &self.key.owner, Some(&server), error);
        }
        let place = self.pending.return_to.as_deref();
        let return_to = place.and_then(|place| return_to::told(place, status, &server));
        match result {
            Err(error) if return_to.is_none() => Err(error),
            _ => Ok(Finished { server, return_to }),
        }
    }

    /// A person who said no was asked by a provider that knows the client; anything else leaves that open.
    async fn doubt(&self, denied: &Error) {
        let (inner, discovered) = (&self.inner, &self.pending.discovered);
        match denied {
            Error::Denied { error, .. } if error == "access_denied" => {
                clients::worked(inner, &self.permit, discovered).await;
            }
            _ => clients::doubted(inner, &self.permit, discovered).await,
        }
    }

    async fn exchange(&self, code: &str) -> Result<(), Error> {
        let Self {
            inner,
            permit,
            pending,
            ..
        } = self;
        let code = Code {
            code,
            verifier: &pending.verifier,
            redirect_uri: &pending.redirect_uri,
            resource: pending.resource.as_deref(),
        };
        let (client, discovered) = (&pending.client, &pending.discovered);
        let exchanged = token::exchange(
            &inner.egress,
            permit,
            client,
            discovered,
            code,
            self.deadline,
        )
        .await;
        match exchanged {
            Ok(tokens) => {
                self.keep(tokens).await?;
                clients::worked(inner, permit, discovered).await;
                Ok(())
            }
            Err(failure) => {
                let is_dead = matches!(
                    failure,
                    Failure::Terminal {
                        client_dead: true,
                        ..
                    }
                );
                if is_dead {
                    clients::died(inner, permit, &discovered.issuer, client).await;
                } else {
                    clients::doubted(inner, permit, discovered).await;
                }
                Err(self.failed(failure))
            }
        }
    }

    fn failed(&self, failure: Failure) -> Error {
        let server = self.key.server.clone();
        match failure {
            Failure::Terminal {
                error, description, ..
            } => denied(&error, description.as_deref()),
            Failure::Transient { what, .. } => Error::Transient { server, what },
            Failure::Egress(source) => Error::Egress { server, source },
        }
    }

    /// Seals the connection and puts it in the place of what was there.
    async fn keep(&self, tokens: Tokens) -> Result<(), Error> {
        let inner = &self.inner;
        let payload = self.payload(tokens);
        let mut row = GrantRow {
            record: id::ordered(inner.clock.now()),
            key: self.key.clone(),
            grant: id::random(),
            version: 1,
            issuer: payload.issuer.as_str().into(),
            client: payload.client.id.as_str().into(),
            resource: payload.resource_sent.as_deref().map(Arc::from),
            state: GrantState::Active,
            expires_at: payload.expires_at,
            next_try: None,
            lease: None,
            kid: inner.vault.primary(),
            sealed: Vec::new(),
            created_at: payload.obtained_at,
        };
        row.sealed = grant::seal(&inner.vault, &row, &payload);
        row.kid = grant::kid(&row.sealed);
        let replaced = match inner.records.put_grant(row.clone()).await {
            Ok(replaced) => replaced,
            Err(error) => {
                // Nobody could ever use them.
                disconnect::revoke_row(inner, &self.permit, &row).await;
                return Err(error.into());
            }
        };
        inner.forget(&self.key);
        inner.note(
            Kind::Connect,
            "connected",
            &self.key,
            (OutcomeKind::Allowed, None),
        );
        // Where there is no room, the next call tells what the server shows.
        drop(inner.made.try_send(self.permit.clone()));
        if let Some(replaced) = replaced {
            self.revoke(replaced, &row);
        }
        Ok(())
    }

    fn payload(&self, tokens: Tokens) -> Payload {
        let now = self.inner.now();
        let after = |seconds: u64| now.saturating_add_unsigned(seconds);
        let pending = &self.pending;
        let discovered = &pending.discovered;
        Payload {
            expires_at: tokens.expires_in.map(after),
            refresh_expires_at: tokens.refresh_expires_in.map(after),
            requested_scopes: pending.scopes.clone(),
            // Left out, it is what was asked for (RFC 6749, section 5.1).
            granted_scopes: tokens.scopes.unwrap_or_else(|| pending.scopes.clone()),
            access: tokens.access,
            refresh: tokens.refresh,
            issuer: discovered.issuer.clone(),
            token_endpoint: discovered.token_endpoint.clone(),
            revocation_endpoint: discovered.revocation_endpoint.clone(),
            client: pending.client.clone(),
            resource_sent: pending.resource.clone(),
            endpoint: pending.endpoint.clone(),
            obtained_at: now,
            wanted: Vec::new(),
            tried: pending.tried.clone(),
        }
    }

    /// Revokes what was replaced, in the background. To one client of one issuer, providers give the same grant again:
    /// the old tokens cannot be revoked there without the new ones, and end by themselves.
    fn revoke(&self, replaced: GrantRow, new: &GrantRow) {
        if (&replaced.issuer, &replaced.client) == (&new.issuer, &new.client) {
            return;
        }
        let (inner, permit) = (self.inner.clone(), self.permit.clone());
        let revoke = async move {
            let revoked = disconnect::revoke_row(&inner, &permit, &replaced).await;
            tell::revoked(&inner, &replaced.key, revoked);
        };
        self.inner.tasks.spawn_on(revoke, &self.inner.runtime);
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
