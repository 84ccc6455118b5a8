//! What records say of connections besides that something happened to them.

use std::sync::Arc;

use super::{
    Error, GrantKey, Inner, Key, Revoked, Row, credential::secrets::shared::of_nobody,
    inner::subject,
};
use crate::{
    audit::{Kind, OutcomeKind, Phase, Record},
    refusal::Code,
    subject::Owner,
};

/// The end of a connection, and what the provider made of it.
pub(super) fn disconnected(inner: &Inner, key: &GrantKey, revoked: Revoked) {
    let mut record = of(inner, Kind::Connect, "disconnected").ended(OutcomeKind::Allowed, None);
    record.subject = Some(Arc::new(subject(&key.owner)));
    record.server = Some(key.server.clone());
    record.revoked_upstream = Some(revoked.as_str());
    keep(inner, record);
}

/// What the provider made of a connection that another replaced.
pub(super) fn revoked(inner: &Inner, key: &GrantKey, revoked: Revoked) {
    let outcome = match revoked {
        Revoked::Yes | Revoked::Unsupported => OutcomeKind::Allowed,
        Revoked::No => OutcomeKind::Failed,
    };
    let mut record = of(inner, Kind::Credential, "revoked").ended(outcome, None);
    record.subject = Some(Arc::new(subject(&key.owner)));
    record.server = Some(key.server.clone());
    record.revoked_upstream = Some(revoked.as_str());
    keep(inner, record);
}

/// A flow that was refused or failed; an answer to none is of no server.
pub(super) fn refused(inner: &Inner, owner: &Owner, server: Option<&Arc<str>>, error: &Error) {
    let ended = (outcome(error), Some(error.code()));
    let mut record = of(inner, Kind::Connect, "refused").ended(ended.0, ended.1);
    record.subject = Some(Arc::new(subject(owner)));
    record.server = server.cloned();
    keep(inner, record);
}

/// Whether Tollgate, or policy, or the provider refused, or something did not work.
pub(super) fn outcome(error: &Error) -> OutcomeKind {
    match error {
        Error::Transient { .. } | Error::Egress { .. } | Error::Records(_) => OutcomeKind::Failed,
        _ => OutcomeKind::Refused,
    }
}

/// A row that is not as Tollgate sealed it.
pub(super) fn tampered(inner: &Inner, key: &Key, row: &Row) {
    let ended = (OutcomeKind::Refused, Some(Code::RecordForged));
    let mut record = of(inner, Kind::Credential, "tampered").ended(ended.0, ended.1);
    let whose = match key {
        Key::Secret(key) => Some(key),
        Key::Shared { tenant, server } => Some(&of_nobody(tenant, server)),
        Key::Pending { .. } => row.flow.as_ref(),
        Key::Client { .. } | Key::Discovery { .. } => None,
    };
    record.subject = whose.map(|key| Arc::new(subject(&key.owner)));
    record.server = match key {
        Key::Discovery { server, .. } => Some(server.clone()),
        _ => whose.map(|key| key.server.clone()),
    };
    tracing::error!(row = %row.record, "a sealed row was changed since, or moved");
    keep(inner, record);
}

fn of(inner: &Inner, kind: Kind, event: &'static str) -> Record {
    let mut record = Record::new(inner.clock.now(), kind, Phase::Decision);
    record.method = Some(event.into());
    record
}

fn keep(inner: &Inner, record: Record) {
    // What it tells of has happened; a failure shows in readiness and in its gauge.
    if let Err(error) = inner.journal.queue(record) {
        tracing::error!(%error, "an event of a connection has no record");
    }
}
