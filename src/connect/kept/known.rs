//! A connection as this process knows it: its sealed row, and the life of the token in it.

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    grant::{self, Payload},
    life::{Age, Life},
};
use crate::{
    audit::{Kind, OutcomeKind},
    connect::{GrantKey, GrantRow, Inner, RecordsError},
    refusal::Code,
};

/// What is known of a connection.
pub(in crate::connect) struct Known {
    pub(in crate::connect) row: GrantRow,
    /// `None` where the row does not open.
    life: Option<Life>,
}

impl Known {
    /// The row as it was just read or written.
    pub(in crate::connect) fn of(inner: &Inner, row: GrantRow) -> Self {
        // A token keeps the ends that were worked out when it was first seen, however wall time was set since.
        let before = inner.cache.last(&row.key);
        let same = before.filter(|before| before.row.sealed == row.sealed);
        let life = match same {
            Some(before) => before.life,
            None => {
                let payload = grant::open(&inner.vault, &row).ok();
                payload.map(|payload| Self::life(inner, &row, &payload))
            }
        };
        Self { row, life }
    }

    /// What is sealed in it; `None` where it does not open, which is recorded once.
    pub(in crate::connect) fn open(&self, inner: &Inner) -> Option<Payload> {
        match grant::open(&inner.vault, &self.row) {
            Ok(payload) => Some(payload),
            Err(why) => {
                if inner.patience.tell(self.row.record, self.row.version) {
                    let key = &self.row.key;
                    tracing::error!(row = %self.row.record, server = %key.server, %why, "a connection cannot be opened");
                    let ended = (OutcomeKind::Refused, Some(Code::RecordForged));
                    inner.note(Kind::Credential, "tampered", key, ended);
                }
                None
            }
        }
    }

    /// How old its token is now.
    pub(in crate::connect) fn age(&self, inner: &Inner) -> Age {
        let age = |life: Life| life.age(inner.now(), Instant::now());
        self.life.map_or(Age::Over, age)
    }

    fn life(inner: &Inner, row: &GrantRow, payload: &Payload) -> Life {
        let (eight, _) = row.grant.as_chunks::<8>();
        let seed = u64::from_be_bytes(eight[0]) ^ row.version;
        Life::of(payload, seed, inner.now(), Instant::now())
    }
}

/// The connection, as it was seen at most a second ago. While the database does not answer, as it was seen a little
/// earlier.
pub(in crate::connect) async fn look(
    inner: &Inner,
    key: &GrantKey,
) -> Result<Option<Arc<Known>>, RecordsError> {
    if let Some(known) = inner.spool.known(key) {
        return Ok(Some(known));
    }
    if let Some(known) = inner.cache.believed(key) {
        return Ok(Some(known));
    }
    match read(inner, key).await {
        Err(error) => inner.cache.stale(key).map(Some).ok_or(error),
        read => read,
    }
}

/// The connection, as the database has it now.
pub(in crate::connect) async fn read(
    inner: &Inner,
    key: &GrantKey,
) -> Result<Option<Arc<Known>>, RecordsError> {
    let before = inner.cache.before();
    let Some(row) = inner.records.grant(key).await? else {
        inner.cache.forget(key);
        return Ok(None);
    };
    let known = Arc::new(Known::of(inner, row));
    inner.cache.learn(key, known.clone(), before);
    Ok(Some(known))
}
