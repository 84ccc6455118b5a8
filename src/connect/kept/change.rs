//! Changes of connections that are no refresh: what a server wants besides, and ends that are not their own: the provider
//! forgot the client, or another provider stands in its place.

use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::grant::{self, Payload};
use crate::{
    audit::{Kind, OutcomeKind},
    connect::{
        Claim, Claimed, Earlier, Error, GrantRow, GrantState, Inner, Of, RecordsError, Save,
    },
};

/// How long a change may hold the lease of a connection.
const LEASE: Duration = Duration::from_secs(10);
/// How often a connection is looked at again while somebody refreshes it, and the pause between.
const LOOKS: usize = 80;
const PAUSE: Duration = Duration::from_millis(500);

/// Why connections end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connect) enum End {
    /// Nothing of it is used any more.
    IssuerChanged,
    /// It is used until its access token ends.
    ClientDead,
}

impl End {
    fn reason(self) -> &'static str {
        match self {
            Self::IssuerChanged => "issuer_changed",
            Self::ClientDead => "client_dead",
        }
    }
}

/// Ends every connection that `which` chooses. One that is being refreshed is waited for.
pub(in crate::connect) async fn end_all(
    inner: &Inner,
    of: &Of,
    which: impl Fn(&GrantRow) -> bool,
    end: End,
) -> Result<(), RecordsError> {
    let mut after = None;
    loop {
        let rows = inner.records.grants(of, after).await?;
        let Some(last) = rows.last().map(|row| row.record) else {
            return Ok(());
        };
        for row in rows.into_iter().filter(&which) {
            end_one(inner, row, &which, end).await?;
        }
        after = Some(last);
    }
}

/// Whether `which` chooses any connection.
pub(in crate::connect) async fn any(
    inner: &Inner,
    of: &Of,
    which: impl Fn(&GrantRow) -> bool,
) -> Result<bool, RecordsError> {
    let mut after: Option<Uuid> = None;
    loop {
        let rows = inner.records.grants(of, after).await?;
        if rows.iter().any(&which) {
            return Ok(true);
        }
        match rows.last() {
            Some(row) => after = Some(row.record),
            None => return Ok(false),
        }
    }
}

/// Changes the connection of `row` where nobody refreshes it and it is as it was read. Whether it was changed.
pub(in crate::connect) async fn change(
    inner: &Inner,
    row: &GrantRow,
    edit: impl FnOnce(&mut GrantRow, &mut Payload),
) -> Result<bool, RecordsError> {
    match inner.records.claim(&claim(inner, row)).await? {
        Claimed::Ours { row, earlier } => save(inner, (*row, earlier), edit).await,
        Claimed::Theirs(_) => Ok(false),
    }
}

async fn end_one(
    inner: &Inner,
    mut row: GrantRow,
    which: impl Fn(&GrantRow) -> bool,
    end: End,
) -> Result<(), RecordsError> {
    let grant = row.grant;
    for _ in 0..LOOKS {
        let theirs = match inner.records.claim(&claim(inner, &row)).await? {
            Claimed::Ours { row, earlier } => return ended(inner, (*row, earlier), end).await,
            Claimed::Theirs(row) => row,
        };
        // Made anew, or gone: then it is none of those that had to end.
        let Some(now) = theirs.filter(|now| now.grant == grant && which(now)) else {
            return Ok(());
        };
        if now.version == row.version {
            sleep(PAUSE).await;
        }
        row = *now;
    }
    let (server, reason) = (&row.key.server, end.reason());
    tracing::warn!(%server, reason, "a connection that is refreshed all the time could not be ended");
    Ok(())
}

async fn ended(inner: &Inner, claimed: (GrantRow, Earlier), end: End) -> Result<(), RecordsError> {
    let key = claimed.0.key.clone();
    let saved = save(inner, claimed, |row, payload| {
        row.state = GrantState::NeedsReconnect(end.reason());
        payload.refresh = None;
        if end == End::IssuerChanged {
            payload.access = Zeroizing::default();
            payload.expires_at = Some(0);
        }
    });
    if saved.await? {
        let code = Error::Reconnect {
            server: key.server.clone(),
            reason: end.reason(),
        }
        .code();
        let ended = (OutcomeKind::Refused, Some(code));
        inner.note(Kind::Connect, "reconnect_needed", &key, ended);
    }
    Ok(())
}

fn claim(inner: &Inner, row: &GrantRow) -> Claim {
    Claim {
        record: row.record,
        version: row.version,
        holder: inner.holder,
        lease: LEASE,
    }
}

/// Writes a claimed row back with what `edit` makes of it, and ends the lease. What does not open stays as it is, and so does
/// what nobody knows of an earlier request.
async fn save(
    inner: &Inner,
    (mut row, earlier): (GrantRow, Earlier),
    edit: impl FnOnce(&mut GrantRow, &mut Payload),
) -> Result<bool, RecordsError> {
    let fence = row.lease.as_ref().map_or(0, |lease| lease.fence);
    if let Ok(mut payload) = grant::open(&inner.vault, &row) {
        edit(&mut row, &mut payload);
        row.version += 1;
        row.expires_at = payload.expires_at;
        row.sealed = grant::seal(&inner.vault, &row, &payload);
        row.kid = grant::kid(&row.sealed);
    }
    let save = Save {
        record: row.record,
        fence,
        row,
        unknown: earlier == Earlier::Unknown,
    };
    let saved = inner.records.save(&save).await?;
    inner.forget(&save.row.key);
    Ok(saved)
}
