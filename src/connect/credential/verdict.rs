//! What a server says of a token by its answer. A token that it refuses, and in whose place there is no other, is kept as
//! refused: the page, the operator and every process tell what calls are told. For a minute it is not sent in vain; then
//! the next call tries it again, and one that is let in, a refresh or a new connection ends the verdict.

use std::sync::Arc;

use crate::{
    audit::{Kind, OutcomeKind},
    connect::{
        GrantState, Inner, RecordsError, inner,
        kept::{change::change, grant::Payload, known::Known},
    },
    policy::Permit,
    refusal::Code,
    vault::Credential,
};

/// The reason of a connection whose token a server refused.
pub(super) const REFUSED: &str = "refused";

/// Keeps that the server refused the token of `known`. Nothing is kept where that is the row's token no more.
pub(super) async fn refused(inner: &Inner, known: &Known, payload: &Payload) {
    let now = inner.now();
    if payload.rests(now) {
        return;
    }
    let row = &known.row;
    // Why it cannot be refreshed stays the reason.
    let is_news = row.state == GrantState::Active;
    let changed = change(inner, row, |row, payload| {
        if is_news {
            row.state = GrantState::NeedsReconnect(REFUSED);
        }
        payload.refused_at = Some(now);
    });
    match changed.await {
        Ok(true) if is_news => {
            let ended = (OutcomeKind::Refused, Some(Code::ConnectAgain));
            inner.note(Kind::Connect, "reconnect_needed", &row.key, ended);
        }
        // The next refusal is kept, if there is one.
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(%error, server = %row.key.server, "that a server refuses a token was not kept");
        }
    }
}

/// The server let `used` in: a verdict on that token is over.
pub(in crate::connect) fn taken(inner: &Arc<Inner>, permit: &Permit, used: &Credential) {
    let key = inner::key(permit);
    // Whoever sends a token has just read its row.
    let is_refused = |known: &Known| known.row.state == GrantState::NeedsReconnect(REFUSED);
    let Some(known) = inner.cache.last(&key).filter(|known| is_refused(known)) else {
        return;
    };
    let (inner, digest) = (inner.clone(), *used.digest());
    let (tasks, runtime) = (inner.tasks.clone(), inner.runtime.clone());
    let clearing = async move {
        if let Err(error) = clear(&inner, &known, &digest).await {
            tracing::warn!(%error, server = %key.server, "that a server takes a token again was not kept");
        }
    };
    tasks.spawn_on(clearing, &runtime);
}

async fn clear(inner: &Inner, known: &Known, used: &[u8; 32]) -> Result<(), RecordsError> {
    let is_used = known.open(inner).is_some_and(|payload| payload.shows(used));
    let cleared = is_used
        && change(inner, &known.row, |row, payload| {
            row.state = GrantState::Active;
            payload.refused_at = None;
        })
        .await?;
    if cleared {
        let taken = (OutcomeKind::Allowed, None);
        inner.note(Kind::Connect, "usable_again", &known.row.key, taken);
    }
    Ok(())
}
