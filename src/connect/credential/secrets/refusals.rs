//! Secrets that their server refused. That is kept with the secret, so that every process, the page and the operator tell
//! what calls are told, after a restart too. One is not sent for a while then, twice as long after each further refusal, as
//! [`Rest`] says; the next call tries it again, since it may have been put right at the server. One that is let in, and
//! another that is entered, end it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Entered, TRIES, key, shared};
use crate::{
    audit::{Kind, OutcomeKind},
    connect::{Error, Inner, Key, RecordsError, credential::verdict::REFUSED, inner, kept},
    policy::{Auth, Permit},
    vault::Credential,
};

/// How long a secret rests after it was refused once, and at most, in seconds.
#[derive(Clone, Copy)]
pub(in crate::connect) struct Rest {
    first: i64,
    longest: i64,
}

impl Rest {
    /// One's own secret.
    pub(super) const OWN: Self = Self {
        first: 60,
        longest: 10 * 60,
    };
    /// Everybody's, which a server may refuse because of what one user called.
    pub(super) const SHARED: Self = Self {
        first: 5,
        longest: 60,
    };

    /// That of what is sent to this server.
    pub(super) fn of(permit: &Permit) -> Self {
        match permit.server().auth {
            Auth::Shared(_) => Self::SHARED,
            _ => Self::OWN,
        }
    }
}

/// How often a secret was refused, one time after the other, and when last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::connect) struct Refused {
    at: i64,
    times: u32,
}

impl Refused {
    pub(super) fn again(before: Option<Self>, at: i64) -> Self {
        let times = before.map_or(1, |before| before.times.saturating_add(1));
        Self { at, times }
    }

    /// Whether it was refused so lately that it is not sent. A time to come was left behind by a clock.
    pub(in crate::connect) fn rests(self, rest: Rest, now: i64) -> bool {
        let doubled = rest.first << self.times.saturating_sub(1).min(6);
        (self.at..self.at.saturating_add(doubled.min(rest.longest))).contains(&now)
    }
}

/// The server refused `used`: another secret to send, where somebody entered one meanwhile. Else it is kept as refused.
pub(in crate::connect) async fn another(
    inner: &Inner,
    permit: &Permit,
    used: Option<&Credential>,
) -> Result<Credential, Error> {
    inner.secrets.forget(&key(permit));
    let credential = super::current(inner, permit).await?;
    match used {
        Some(used) if used.digest() == credential.digest() => {
            Err(refused(inner, permit, used).await)
        }
        _ => Ok(credential),
    }
}

/// Keeps that the server refused `used`, where that is still the secret; what to tell the caller.
pub(in crate::connect) async fn refused(
    inner: &Inner,
    permit: &Permit,
    used: &Credential,
) -> Error {
    match mark(inner, permit, used.digest()).await {
        Ok(true) => note(inner, permit, true),
        Ok(false) => {}
        Err(error) => {
            let server = &permit.server().name;
            tracing::warn!(%error, %server, "that a server refuses a secret was not kept");
        }
    }
    super::again(permit, REFUSED)
}

/// The server let `used` in: if it was kept as refused, it is so no more.
pub(in crate::connect) fn taken(inner: &Arc<Inner>, permit: &Permit, used: &Credential) {
    // Whoever sends a secret has just read its row.
    let held = inner.secrets.last(&key(permit));
    if !held.is_some_and(|held| held.refused) {
        return;
    }
    let (inner, permit, digest) = (inner.clone(), permit.clone(), *used.digest());
    let (tasks, runtime) = (inner.tasks.clone(), inner.runtime.clone());
    let clearing = async move {
        match clear(&inner, &permit, &digest).await {
            Ok(true) => note(&inner, &permit, false),
            Ok(false) => {}
            Err(error) => {
                let server = &permit.server().name;
                tracing::warn!(%error, %server, "that a server takes a secret again was not kept");
            }
        }
    };
    tasks.spawn_on(clearing, &runtime);
}

/// Whether it was not kept as refused before.
async fn mark(inner: &Inner, permit: &Permit, used: &[u8; 32]) -> Result<bool, RecordsError> {
    for _ in 0..TRIES {
        let Some((version, mut entered)) = same(inner, permit, used).await? else {
            return Ok(false);
        };
        let (before, now) = (entered.refused, inner.now());
        if before.is_some_and(|before| before.rests(Rest::of(permit), now)) {
            return Ok(false);
        }
        entered.refused = Some(Refused::again(before, now));
        if write(inner, permit, version, &entered).await? {
            return Ok(before.is_none());
        }
    }
    Ok(false)
}

/// Whether it was kept as refused until now.
async fn clear(inner: &Inner, permit: &Permit, used: &[u8; 32]) -> Result<bool, RecordsError> {
    for _ in 0..TRIES {
        let Some((version, mut entered)) = same(inner, permit, used).await? else {
            return Ok(false);
        };
        if entered.refused.take().is_none() {
            return Ok(false);
        }
        if write(inner, permit, version, &entered).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The secret, and its row's version, where it is still the one that was sent.
async fn same(
    inner: &Inner,
    permit: &Permit,
    used: &[u8; 32],
) -> Result<Option<(u64, Entered)>, RecordsError> {
    let Some(found) = kept::read::<Entered>(inner, &key(permit)).await? else {
        return Ok(None);
    };
    let is_used = |entered: &Entered| {
        let credential = entered.credential(permit.server());
        credential.is_some_and(|credential| credential.digest() == used)
    };
    let entered = found.value.filter(is_used);
    Ok(entered.map(|entered| (found.version, entered)))
}

async fn write(
    inner: &Inner,
    permit: &Permit,
    version: u64,
    entered: &Entered,
) -> Result<bool, RecordsError> {
    let key = key(permit);
    let written = kept::replace(inner, &key, Some(version), entered, None).await?;
    inner.secrets.forget(&key);
    Ok(written)
}

/// Takes down that a secret is refused, or taken again.
fn note(inner: &Inner, permit: &Permit, is_refused: bool) {
    let server = &permit.server().name;
    let code = super::again(permit, REFUSED).code();
    let ended = match is_refused {
        true => (OutcomeKind::Refused, Some(code)),
        false => (OutcomeKind::Allowed, None),
    };
    match key(permit) {
        Key::Shared { tenant, .. } => {
            let method = match is_refused {
                true => "shared_refused",
                false => "shared_usable_again",
            };
            if is_refused {
                tracing::error!(%server, %tenant, code = code.as_str(), "the server refuses the secret that the operator keeps for it");
            }
            shared::note(inner, Kind::Credential, method, (&tenant, server), ended);
        }
        _ => {
            let method = match is_refused {
                true => "reconnect_needed",
                false => "usable_again",
            };
            inner.note(Kind::Connect, method, &inner::key(permit), ended);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_secret_rests_longer_each_time_and_not_for_ever() {
        let late = |refused: Refused, rest| {
            let over = |late: &i64| !refused.rests(rest, 1_000 + late);
            (0..10_000).find(over).unwrap()
        };
        let rests = |rest| {
            let mut refused = Refused::again(None, 1_000);
            let mut rests = vec![late(refused, rest)];
            for _ in 1..8 {
                refused = Refused::again(Some(refused), 1_000);
                rests.push(late(refused, rest));
            }
            assert!(!refused.rests(rest, 999), "a clock was set back");
            let ever = Refused {
                at: 1_000,
                times: u32::MAX,
            };
            rests.push(late(Refused::again(Some(ever), 1_000), rest));
            rests
        };
        assert_eq!(
            rests(Rest::OWN),
            [60, 120, 240, 480, 600, 600, 600, 600, 600]
        );
        assert_eq!(rests(Rest::SHARED), [5, 10, 20, 40, 60, 60, 60, 60, 60]);
    }
}
