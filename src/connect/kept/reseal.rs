//! Rows follow the primary key: each is opened and sealed again, and no token leaves its seal for longer than that takes.

use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;

use crate::{
    connect::{Claim, Claimed, Earlier, GrantRow, Key, Of, Records, RecordsError, Row, Save},
    vault::{Binding, Kid, Vault},
};

/// Between two rows: a hundred are sealed in a second, so that nothing else waits long for the database.
const PAUSE: Duration = Duration::from_millis(10);
/// How long a connection is claimed for: writing takes the database's patience with another process at most.
const LEASE: Duration = Duration::from_secs(10);

/// What a round over all rows came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Rows that were sealed again.
    pub done: u64,
    /// Rows that somebody else changed meanwhile, or that are refreshed just now: they are for the next round.
    pub busy: u64,
    /// Rows that do not open. They stay as they are, to be found by whoever needs them.
    pub unopened: u64,
}

/// Seals every row that is sealed under another key than the primary one again. Flows are left out: they end sooner. Several
/// processes may do so at once: each change is of the version that was read.
///
/// # Errors
///
/// The database does not work; what was done until then stays so.
pub async fn reseal(records: &dyn Records, vault: &Vault) -> Result<Resealed, RecordsError> {
    let mut round = Resealed::default();
    let holder = Uuid::from_bytes(crate::id::random());
    let mut after = None;
    loop {
        let rows = records.grants(&Of::Everyone, after).await?;
        let Some(last) = rows.last() else {
            break;
        };
        after = Some(last.record);
        for row in rows.iter().filter(|row| row.kid != vault.primary()) {
            let outcome = connection(records, vault, holder, row).await?;
            round.count(outcome);
            sleep(PAUSE).await;
        }
    }
    let mut after = None;
    loop {
        let rows = records.rows(&Of::Everyone, after).await?;
        let Some((_, last)) = rows.last() else {
            return Ok(round);
        };
        after = Some(last.record);
        for (key, row) in rows {
            if row.kid == vault.primary() || matches!(key, Key::Pending { .. }) {
                continue;
            }
            let outcome = other(records, vault, &key, row).await?;
            round.count(outcome);
            sleep(PAUSE).await;
        }
    }
}

enum Outcome {
    Done,
    Busy,
    Unopened,
}

impl Resealed {
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Done => self.done += 1,
            Outcome::Busy => self.busy += 1,
            Outcome::Unopened => self.unopened += 1,
        }
    }
}

/// A connection is claimed like for a refresh: nobody refreshes it meanwhile, and one that is refreshed is left alone.
async fn connection(
    records: &dyn Records,
    vault: &Vault,
    holder: Uuid,
    seen: &GrantRow,
) -> Result<Outcome, RecordsError> {
    // Found out before it is claimed, so that a row that was tampered with is not even touched.
    if vault.open(&seen.binding(), &seen.sealed).is_err() {
        return Ok(Outcome::Unopened);
    }
    let claim = Claim {
        record: seen.record,
        version: seen.version,
        holder,
        lease: LEASE,
    };
    let Claimed::Ours { mut row, earlier } = records.claim(&claim).await? else {
        return Ok(Outcome::Busy);
    };
    let fence = row.lease.as_ref().map_or(0, |lease| lease.fence);
    let before = row.clone();
    row.version += 1;
    let again = sealed_again(vault, (&before.binding(), &before.sealed), &row.binding());
    let opened = again.is_some();
    let (kid, sealed, version) = match again {
        Some((kid, sealed)) => (kid, sealed, row.version),
        // Somebody changed it since it was opened above; what was claimed is given back as it is.
        None => (before.kid, before.sealed, before.version),
    };
    let save = Save {
        record: row.record,
        fence,
        row: GrantRow {
            kid,
            sealed,
            version,
            ..*row
        },
        unknown: earlier == Earlier::Unknown,
    };
    let saved = records.save(&save).await?;
    Ok(match (saved, opened) {
        (true, true) => Outcome::Done,
        (_, false) => Outcome::Unopened,
        (false, true) => Outcome::Busy,
    })
}

async fn other(
    records: &dyn Records,
    vault: &Vault,
    key: &Key,
    before: Row,
) -> Result<Outcome, RecordsError> {
    let mut row = before.clone();
    row.version += 1;
    let from = (&before.binding(key), &*before.sealed);
    let Some((kid, sealed)) = sealed_again(vault, from, &row.binding(key)) else {
        return Ok(Outcome::Unopened);
    };
    (row.kid, row.sealed) = (kid, sealed);
    let replaced = records.replace(key, Some(before.version), &row).await?;
    Ok(if replaced {
        Outcome::Done
    } else {
        Outcome::Busy
    })
}

/// What is sealed in `from`, sealed for `to`, and the key that it is sealed under.
fn sealed_again(
    vault: &Vault,
    (from, sealed): (&Binding<'_>, &[u8]),
    to: &Binding<'_>,
) -> Option<(Kid, Vec<u8>)> {
    let opened = vault.open(from, sealed).ok()?;
    let sealed = vault.seal(to, opened.expose());
    Some((Kid::of(&sealed)?, sealed))
}
