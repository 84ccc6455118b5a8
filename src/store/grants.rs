//! Connections: their sealed rows, and the leases under which one process at a time asks for new tokens.
//!
//! Rows carry no mark of their own: what grants something is sealed, and bound to the columns that say whose it is. What
//! stands beside it are hints, and the lease.

use std::sync::Arc;

use rusqlite::{
    Connection, OptionalExtension, Row, ToSql, Transaction, TransactionBehavior, params,
};
use uuid::Uuid;

use super::{database::Database, failure::Failure};
use crate::{
    connect::{Claim, Claimed, Earlier, GrantKey, GrantRow, GrantState, Lease, Of, Save},
    subject::Owner,
    vault::{Kid, Mac},
};

/// No lease lasts longer, in seconds.
const LONGEST_LEASE: i64 = 60;

/// Rows of one answer.
pub(super) const PAGE: i64 = 256;

const COLUMNS: &str = "record, tenant, user, server, grant_id, version, issuer, client, resource, state, expires_at, \
    next_try, fence, holder, until, sent, kid, sealed, created_at";

/// The tables: every connection, and the last fence that was given out for any of them.
pub(super) fn tables(transaction: &Transaction<'_>, _mac: &Mac) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "CREATE TABLE grants (
            record BLOB PRIMARY KEY,
            tenant TEXT NOT NULL,
            user TEXT NOT NULL,
            server TEXT NOT NULL,
            grant_id BLOB NOT NULL,
            version INTEGER NOT NULL,
            issuer TEXT NOT NULL,
            client TEXT NOT NULL,
            resource TEXT,
            state TEXT NOT NULL,
            expires_at INTEGER,
            next_try INTEGER,
            fence INTEGER NOT NULL,
            holder BLOB,
            until INTEGER,
            sent INTEGER NOT NULL,
            kid BLOB NOT NULL,
            sealed BLOB NOT NULL,
            created_at INTEGER NOT NULL,
            UNIQUE (tenant, user, server)
        ) STRICT;
        CREATE INDEX grants_of_servers ON grants (server);
        CREATE TABLE fences (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            last INTEGER NOT NULL
        ) STRICT;
        INSERT INTO fences (id, last) VALUES (1, 0);",
    )
}

pub(super) fn one(connection: &Connection, key: &GrantKey) -> Result<Option<GrantRow>, Failure> {
    let found = connection
        .prepare(&format!(
            "SELECT {COLUMNS} FROM grants WHERE tenant = ?1 AND user = ?2 AND server = ?3"
        ))?
        .query_row(words(key), grant)
        .optional()?;
    Ok(found)
}

pub(super) fn page(
    connection: &Connection,
    of: &Of,
    after: Option<Uuid>,
) -> Result<Vec<GrantRow>, Failure> {
    let (tenant, user, server) = parts(of);
    let mut statement = connection.prepare(&format!(
        "SELECT {COLUMNS} FROM grants
        WHERE {} AND (?4 IS NULL OR record > ?4) ORDER BY record LIMIT ?5",
        those(of)
    ))?;
    let after = after.map(Uuid::into_bytes);
    let rows = statement.query_map(params![tenant, user, server, after, PAGE], grant)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn put(database: &mut Database, row: &GrantRow) -> Result<Option<GrantRow>, Failure> {
    let transaction = database.change()?;
    let before = one(&transaction, &row.key)?;
    let delete = "DELETE FROM grants WHERE tenant = ?1 AND user = ?2 AND server = ?3";
    transaction.execute(delete, words(&row.key))?;
    transaction.execute(
        &format!(
            "INSERT INTO grants ({COLUMNS}) VALUES
            (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, NULL, NULL, 0, ?14, ?15, ?16)"
        ),
        params![
            row.record.as_bytes(),
            row.key.owner.tenant,
            row.key.owner.user,
            row.key.server,
            row.grant,
            row.version.cast_signed(),
            row.issuer,
            row.client,
            row.resource,
            row.state.as_str(),
            row.expires_at,
            row.next_try,
            next_fence(&transaction)?,
            row.kid.0,
            row.sealed,
            row.created_at,
        ],
    )?;
    transaction.commit()?;
    Ok(before)
}

/// A lease that ends later than any could, had it been taken just now, was left behind by a clock that was set back: it
/// holds nobody up.
pub(super) fn claim(
    connection: &mut Connection,
    claim: &Claim,
    now: i64,
) -> Result<Claimed, Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(before) = by_record(&transaction, claim.record)? else {
        return Ok(Claimed::Theirs(None));
    };
    let (before, sent) = before;
    let until = now.saturating_add_unsigned(claim.lease.as_secs());
    let claimed = transaction.execute(
        "UPDATE grants SET fence = ?1, holder = ?2, until = ?3, sent = 1
        WHERE record = ?4 AND version = ?5 AND (holder IS NULL OR until <= ?6 OR until > ?7)",
        params![
            next_fence(&transaction)?,
            claim.holder.as_bytes(),
            until,
            claim.record.as_bytes(),
            claim.version.cast_signed(),
            now,
            now.saturating_add(LONGEST_LEASE),
        ],
    )?;
    if claimed == 0 {
        return Ok(Claimed::Theirs(Some(Box::new(before))));
    }
    let after = by_record(&transaction, claim.record)?.ok_or(Failure::Forged)?;
    transaction.commit()?;
    Ok(Claimed::Ours {
        row: Box::new(after.0),
        earlier: if sent {
            Earlier::Unknown
        } else {
            Earlier::Known
        },
    })
}

pub(super) fn save(database: &mut Database, save: &Save) -> Result<bool, Failure> {
    let transaction = database.change()?;
    let fence = save.fence.cast_signed();
    let saved = write(&transaction, save.record, &save.row, fence, save.unknown)?;
    transaction.commit()?;
    Ok(saved)
}

/// Writes over a row that is as it was read, whoever holds its lease: nothing that was claimed since is saved then.
pub(super) fn overwrite(
    database: &mut Database,
    version: u64,
    row: &GrantRow,
) -> Result<bool, Failure> {
    let transaction = database.change()?;
    let fence = next_fence(&transaction)?;
    let mine = "UPDATE grants SET fence = ?1, holder = ?2 WHERE record = ?3 AND version = ?4";
    let record = row.record.as_bytes();
    let nobody = Uuid::nil().into_bytes();
    let claimed =
        transaction.execute(mine, params![fence, nobody, record, version.cast_signed()])?;
    if claimed == 0 || !write(&transaction, row.record, row, fence, false)? {
        return Ok(false);
    }
    transaction.commit()?;
    Ok(true)
}

pub(super) fn remove(
    database: &mut Database,
    key: &GrantKey,
    only: Option<[u8; 16]>,
) -> Result<Option<GrantRow>, Failure> {
    let transaction = database.change()?;
    let removed = transaction
        .query_row(
            &format!(
                "DELETE FROM grants
                WHERE tenant = ?1 AND user = ?2 AND server = ?3 AND (?4 IS NULL OR grant_id = ?4)
                RETURNING {COLUMNS}"
            ),
            params![key.owner.tenant, key.owner.user, key.server, only],
            grant,
        )
        .optional()?;
    transaction.commit()?;
    Ok(removed)
}

/// Which rows, so that an index serves where there is one; the parameters are always [`parts`].
pub(super) fn those(of: &Of) -> &'static str {
    match of {
        Of::Owner(_) => "tenant = ?1 AND user = ?2 AND ?3 IS NULL",
        Of::Server(_) => "?1 IS NULL AND ?2 IS NULL AND server = ?3",
        Of::Everyone => "?1 IS NULL AND ?2 IS NULL AND ?3 IS NULL",
    }
}

/// Tenant, user and server that rows are of; what is absent may be any.
pub(super) fn parts(of: &Of) -> (Option<&str>, Option<&str>, Option<&str>) {
    match of {
        Of::Owner(owner) => (Some(&owner.tenant), Some(&owner.user), None),
        Of::Server(server) => (None, None, Some(server)),
        Of::Everyone => (None, None, None),
    }
}

pub(super) fn words(key: &GrantKey) -> [&dyn ToSql; 3] {
    [&key.owner.tenant, &key.owner.user, &key.server]
}

/// Bytes of a length that this program writes. Others become zeros, with which nothing opens: so it is found to be
/// changed where it is opened, like any other change.
pub(super) fn bytes<const N: usize>(row: &Row<'_>, column: usize) -> rusqlite::Result<[u8; N]> {
    let bytes: Vec<u8> = row.get(column)?;
    Ok(bytes.try_into().unwrap_or([0; N]))
}

/// Writes a row that is claimed with `fence`, and ends the lease.
fn write(
    transaction: &Transaction<'_>,
    record: Uuid,
    row: &GrantRow,
    fence: i64,
    unknown: bool,
) -> rusqlite::Result<bool> {
    let saved = transaction.execute(
        "UPDATE grants SET grant_id = ?1, version = ?2, issuer = ?3, client = ?4, resource = ?5, state = ?6,
            expires_at = ?7, next_try = ?8, holder = NULL, until = NULL, sent = ?9, kid = ?10, sealed = ?11
        WHERE record = ?12 AND fence = ?13 AND holder IS NOT NULL",
        params![
            row.grant,
            row.version.cast_signed(),
            row.issuer,
            row.client,
            row.resource,
            row.state.as_str(),
            row.expires_at,
            row.next_try,
            unknown,
            row.kid.0,
            row.sealed,
            record.as_bytes(),
            fence,
        ],
    )?;
    Ok(saved == 1)
}

/// Rises for ever, whatever comes and goes: of two fences of one key the later is the higher.
fn next_fence(transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
    let next = "UPDATE fences SET last = last + 1 RETURNING last";
    transaction.query_row(next, [], |row| row.get(0))
}

/// A row, and whether a request may have been sent whose end is not known.
fn by_record(
    transaction: &Transaction<'_>,
    record: Uuid,
) -> rusqlite::Result<Option<(GrantRow, bool)>> {
    transaction
        .prepare(&format!("SELECT {COLUMNS} FROM grants WHERE record = ?1"))?
        .query_row([record.as_bytes()], |row| Ok((grant(row)?, row.get(15)?)))
        .optional()
}

fn grant(row: &Row<'_>) -> rusqlite::Result<GrantRow> {
    let state: String = row.get(9)?;
    let holder = match row.get_ref(13)? {
        rusqlite::types::ValueRef::Null => None,
        _ => Some(Uuid::from_bytes(bytes(row, 13)?)),
    };
    let fence = row.get::<_, i64>(12)?.cast_unsigned();
    let (until, sent) = (row.get::<_, Option<i64>>(14)?, row.get(15)?);
    Ok(GrantRow {
        record: Uuid::from_bytes(bytes(row, 0)?),
        key: GrantKey {
            owner: Owner {
                tenant: row.get(1)?,
                user: row.get(2)?,
            },
            server: row.get::<_, Arc<str>>(3)?,
        },
        grant: bytes(row, 4)?,
        version: row.get::<_, i64>(5)?.cast_unsigned(),
        issuer: row.get(6)?,
        client: row.get(7)?,
        resource: row.get(8)?,
        state: GrantState::parse(&state),
        expires_at: row.get(10)?,
        next_try: row.get(11)?,
        lease: holder.map(|holder| Lease {
            fence,
            holder,
            until: until.unwrap_or_default(),
            sent,
        }),
        kid: Kid(bytes(row, 16)?),
        sealed: row.get(17)?,
        created_at: row.get(18)?,
    })
}
