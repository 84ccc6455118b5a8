//! What is sent with a request: the operator's secret, a person's own, or the token of a person's connection.

pub(super) mod secrets;
pub(super) mod verdict;

use std::{pin::pin, sync::Arc, time::Duration};

use zeroize::Zeroizing;

use self::{
    secrets::{of_file, refusals},
    verdict::REFUSED,
};
use super::{
    Challenge, Error, GrantState, Inner,
    found::discovered,
    inner,
    kept::{
        grant::Payload,
        known::{self, Known},
        life::Age,
    },
    refresh::{self, Ask, flights::Ended},
};
use crate::{
    audit::{Kind, OutcomeKind},
    deadline::{Deadline, until},
    policy::{Auth, Permit, Shared},
    refusal::Code,
    vault::Credential,
};

/// How long a caller waits for a token in the place of one that is over.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a caller looks again after something was settled.
const ROUNDS: usize = 4;

/// What to send now; `None` where nothing is sent.
pub(super) async fn current(
    inner: &Arc<Inner>,
    permit: &Permit,
    deadline: Deadline,
) -> Result<Option<Credential>, Error> {
    match &permit.server().auth {
        Auth::None => Ok(None),
        Auth::Shared(Shared {
            secret: Some(secret),
            ..
        }) => of_file::current(inner, permit, secret).map(Some),
        Auth::Bearer | Auth::Header(_) | Auth::Shared(_) => {
            secrets::current(inner, permit).await.map(Some)
        }
        Auth::OAuth(_) => token(inner, permit, deadline).await.map(Some),
    }
}

/// What to send in the place of `used`, which the server answered with 401.
pub(super) async fn another(
    inner: &Arc<Inner>,
    permit: &Permit,
    used: Option<&Credential>,
    challenge: &Challenge,
    deadline: Deadline,
) -> Result<Credential, Error> {
    match &permit.server().auth {
        Auth::None => unusable(
            permit,
            "it demands a credential, and its file has no [auth]; add one with the mode that it wants",
        ),
        Auth::Shared(Shared {
            secret: Some(secret),
            ..
        }) => of_file::another(inner, permit, secret, used),
        Auth::Bearer | Auth::Header(_) | Auth::Shared(_) => {
            refusals::another(inner, permit, used).await
        }
        Auth::OAuth(_) => {
            // It is for the next flow, and stops nothing now.
            if let Err(error) = discovered::remember(inner, permit, challenge).await {
                tracing::warn!(%error, "what a server said of its authorization was not kept");
            }
            match used {
                Some(used) => other_token(inner, permit, used.digest(), deadline).await,
                None => token(inner, permit, deadline).await,
            }
        }
    }
}

/// What to send in the place of the token `used`, with which the server pointed elsewhere. `None` where that one is new:
/// then it is not for want of another.
pub(super) async fn elsewhere(
    inner: &Arc<Inner>,
    permit: &Permit,
    used: &Credential,
    deadline: Deadline,
) -> Result<Option<Credential>, Error> {
    if inner
        .patience
        .was_forced(&inner::key(permit), used.digest())
    {
        return Ok(None);
    }
    let other = other_token(inner, permit, used.digest(), deadline);
    other.await.map(Some)
}

/// The server answered 401 to `used`, which came in the place of another: what to tell the caller.
pub(super) async fn refused_again(inner: &Inner, permit: &Permit, used: &Credential) -> Error {
    if is_kept(permit) {
        return refusals::refused(inner, permit, used).await;
    }
    if let Auth::Shared(_) = permit.server().auth {
        return of_file::refused(inner, permit, used);
    }
    if let Auth::OAuth(_) = permit.server().auth
        && let Ok(Some(known)) = known::read(inner, &inner::key(permit)).await
        && let Some(payload) = known.open(inner)
        && payload.shows(used.digest())
    {
        verdict::refused(inner, &known, &payload).await;
        return again(permit, reason(&known, REFUSED));
    }
    again(permit, REFUSED)
}

/// The server let `used` in: where it was kept as refused, it is so no more.
pub(super) fn taken(inner: &Arc<Inner>, permit: &Permit, used: &Credential) {
    if is_kept(permit) {
        refusals::taken(inner, permit, used);
        return;
    }
    match &permit.server().auth {
        Auth::OAuth(_) => verdict::taken(inner, permit, used),
        Auth::Shared(_) => of_file::taken(inner, permit, used),
        Auth::None | Auth::Bearer | Auth::Header(_) => {}
    }
}

/// Whether a static secret of the vault is sent.
fn is_kept(permit: &Permit) -> bool {
    let auth = &permit.server().auth;
    matches!(auth, Auth::Bearer | Auth::Header(_)) || auth.is_in_vault()
}

/// The access token of the permit's connection: as it is while it is good, another once it is over.
async fn token(
    inner: &Arc<Inner>,
    permit: &Permit,
    deadline: Deadline,
) -> Result<Credential, Error> {
    let key = inner::key(permit);
    for _ in 0..ROUNDS {
        if inner.spool.unsettled(&key) {
            wait(inner, permit, Ask::Over, deadline).await?;
        }
        let known = known::look(inner, &key).await?;
        let known = known.ok_or_else(|| required(permit))?;
        let payload = opened(inner, permit, &known)?;
        if payload.rests(inner.now()) {
            return Err(again(permit, reason(&known, REFUSED)));
        }
        match known.age(inner) {
            Age::Fresh => return bearer(permit, &payload.access),
            Age::Due => {
                if refresh::worthwhile(inner, &known.row, &payload) {
                    // It flies on its own.
                    drop(refresh::begin(inner, permit, Ask::Ahead));
                }
                return bearer(permit, &payload.access);
            }
            Age::Over if payload.refreshable(inner.now()) => {
                wait(inner, permit, Ask::Over, deadline).await?;
            }
            Age::Over => return Err(again(permit, reason(&known, "expired"))),
        }
    }
    Err(later(permit, "its tokens change all the time"))
}

/// A token of the permit's connection that is not the one with the digest `used`.
async fn other_token(
    inner: &Arc<Inner>,
    permit: &Permit,
    used: &[u8; 32],
    deadline: Deadline,
) -> Result<Credential, Error> {
    let key = inner::key(permit);
    for _ in 0..ROUNDS {
        let known = match inner.spool.known(&key) {
            Some(known) => Some(known),
            None => known::read(inner, &key).await?,
        };
        let known = known.ok_or_else(|| required(permit))?;
        let payload = opened(inner, permit, &known)?;
        let credential = bearer(permit, &payload.access)?;
        if credential.digest() != used {
            return token(inner, permit, deadline).await;
        }
        let now = inner.now();
        let is_new = inner.patience.was_forced(&key, used);
        if is_new || payload.rests(now) || !payload.refreshable(now) {
            verdict::refused(inner, &known, &payload).await;
            return Err(again(permit, reason(&known, REFUSED)));
        }
        wait(inner, permit, Ask::Refused(*used), deadline).await?;
    }
    Err(later(permit, "its tokens change all the time"))
}

/// Waits for a flight's end, and no longer than a caller can.
async fn wait(
    inner: &Arc<Inner>,
    permit: &Permit,
    ask: Ask,
    deadline: Deadline,
) -> Result<(), Error> {
    let Some(waiting) = refresh::begin(inner, permit, ask) else {
        return Err(later(permit, "no new request is begun now"));
    };
    let ended = until(deadline.phase(PATIENCE), pin!(waiting.ended())).await;
    let ended = ended.unwrap_or_else(|| Ended::Later("no answer came in time".into()));
    ended.error(&permit.server().name).map_or(Ok(()), Err)
}

/// What is sealed in a connection, where it is for this very server, and by the provider and client that its file names.
/// What the file wants otherwise acts at once, and a file that was put back opens the connection again.
fn opened(inner: &Inner, permit: &Permit, known: &Known) -> Result<Payload, Error> {
    let payload = known
        .open(inner)
        .ok_or_else(|| again(permit, "unreadable"))?;
    let Some(reason) = payload.made().unwanted(permit.server()) else {
        return Ok(payload);
    };
    let row = &known.row;
    if inner.patience.tell(row.record, permit.generation()) {
        tracing::warn!(server = %row.key.server, reason, "a connection is not used: the server's file is for another");
        let ended = (OutcomeKind::Refused, Some(Code::ConnectAgain));
        inner.note(Kind::Connect, "reconnect_needed", &row.key, ended);
    }
    Err(again(permit, reason))
}

fn bearer(permit: &Permit, access: &Zeroizing<String>) -> Result<Credential, Error> {
    Credential::bearer(access.as_bytes()).ok_or_else(|| again(permit, "unreadable"))
}

/// Why a connection ended, as it is kept; `otherwise` where nothing was.
fn reason(known: &Known, otherwise: &'static str) -> &'static str {
    match known.row.state {
        GrantState::NeedsReconnect(reason) => reason,
        GrantState::Active => otherwise,
    }
}

fn required(permit: &Permit) -> Error {
    Error::Required {
        server: permit.server().name.clone(),
    }
}

fn again(permit: &Permit, reason: &'static str) -> Error {
    Error::Reconnect {
        server: permit.server().name.clone(),
        reason,
    }
}

fn later(permit: &Permit, what: &str) -> Error {
    Error::Transient {
        server: permit.server().name.clone(),
        what: what.to_owned(),
    }
}

fn unusable<T>(permit: &Permit, what: &str) -> Result<T, Error> {
    Err(Error::Unusable {
        server: permit.server().name.clone(),
        what: what.to_owned(),
    })
}
