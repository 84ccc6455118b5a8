//! The operator's secrets that lie beside the policy, as their servers took them: one that is refused rests like those of
//! the vault, in this process, until it is let in or replaced.

use std::sync::Arc;

use moka::sync::Cache;

use super::{
    refusals::{Refused, Rest},
    shared,
};
use crate::{
    audit::{Kind, OutcomeKind},
    connect::{Error, Inner},
    policy::{Permit, Server},
    refusal::Code,
    secret::Secret,
    vault::Credential,
};

/// Servers that are remembered.
const ENTRIES: u64 = 10_000;

/// What is sent for everybody. One that was refused lately is not.
pub(in crate::connect) fn current(
    inner: &Inner,
    permit: &Permit,
    secret: &Secret,
) -> Result<Credential, Error> {
    let sent = sendable(permit, secret)?;
    let refusal = inner.files.refusal(&permit.server().name, &sent);
    match refusal.is_some_and(|refusal| refusal.rests(Rest::SHARED, inner.now())) {
        true => Err(refuses(permit)),
        false => Ok(sent),
    }
}

/// The server refused `used`: another, where the file was changed meanwhile.
pub(in crate::connect) fn another(
    inner: &Inner,
    permit: &Permit,
    secret: &Secret,
    used: Option<&Credential>,
) -> Result<Credential, Error> {
    let sent = sendable(permit, secret)?;
    match used {
        Some(used) if used.digest() == sent.digest() => Err(refused(inner, permit, used)),
        _ => Ok(sent),
    }
}

/// Remembers that the server refused `used`; what to tell the caller.
pub(in crate::connect) fn refused(inner: &Inner, permit: &Permit, used: &Credential) -> Error {
    if inner.files.refused(permit, used, inner.now()) {
        let (server, code) = (&permit.server().name, Code::ConnectUnusable);
        tracing::error!(%server, code = code.as_str(), "the server refuses the secret that auth.secret names");
        let ended = (OutcomeKind::Refused, Some(code));
        note(inner, permit, "shared_refused", ended);
    }
    refuses(permit)
}

/// The server let `used` in: if it was refused before, it is so no more.
pub(in crate::connect) fn taken(inner: &Inner, permit: &Permit, used: &Credential) {
    if inner.files.taken(permit, used) {
        let ended = (OutcomeKind::Allowed, None);
        note(inner, permit, "shared_usable_again", ended);
    }
}

/// Whether the server refused this very secret.
pub(in crate::connect) fn is_refused(inner: &Inner, server: &Server, secret: &Secret) -> bool {
    let sent = credential(server, secret);
    sent.is_some_and(|sent| inner.files.refusal(&server.name, &sent).is_some())
}

fn note(inner: &Inner, permit: &Permit, method: &'static str, ended: (OutcomeKind, Option<Code>)) {
    let of = (&permit.owner().tenant, &permit.server().name);
    shared::note(inner, Kind::Credential, method, of, ended);
}

fn credential(server: &Server, secret: &Secret) -> Option<Credential> {
    match server.auth.header() {
        Some(name) => Credential::header(name.clone(), secret.expose()),
        None => Credential::bearer(secret.expose()),
    }
}

fn sendable(permit: &Permit, secret: &Secret) -> Result<Credential, Error> {
    let what = "the operator's secret for it cannot stand in a header; let auth.secret name one line of visible ASCII characters";
    credential(permit.server(), secret).ok_or_else(|| unusable(permit, what))
}

fn refuses(permit: &Permit) -> Error {
    unusable(
        permit,
        "it refuses the secret that the operator keeps for it; replace what auth.secret names",
    )
}

fn unusable(permit: &Permit, what: &str) -> Error {
    Error::Unusable {
        server: permit.server().name.clone(),
        what: what.to_owned(),
    }
}

/// What was refused, by server.
pub(in crate::connect) struct Files(Cache<Arc<str>, ([u8; 32], Refused), ahash::RandomState>);

impl Files {
    pub(in crate::connect) fn new() -> Self {
        let cache = Cache::builder().max_capacity(ENTRIES);
        Self(cache.build_with_hasher(ahash::RandomState::new()))
    }

    /// That the server refused this very secret.
    fn refusal(&self, server: &str, credential: &Credential) -> Option<Refused> {
        let (digest, refused) = self.0.get(server)?;
        (digest == *credential.digest()).then_some(refused)
    }

    /// The server refused it; whether that is news.
    fn refused(&self, permit: &Permit, credential: &Credential, now: i64) -> bool {
        let server = &permit.server().name;
        let before = self.refusal(server, credential);
        if !before.is_some_and(|before| before.rests(Rest::SHARED, now)) {
            let again = Refused::again(before, now);
            self.0.insert(server.clone(), (*credential.digest(), again));
        }
        before.is_none()
    }

    /// The server let it in; whether that is news.
    fn taken(&self, permit: &Permit, credential: &Credential) -> bool {
        let server = &permit.server().name;
        let was_refused = self.refusal(server, credential).is_some();
        if was_refused {
            self.0.invalidate(server);
        }
        was_refused
    }
}
