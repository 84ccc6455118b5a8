//! What else is kept of connections, each row sealed: registered clients, what was discovered, static secrets, and flows.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, ToSql, Transaction, params};
use uuid::Uuid;

use super::{
    database::Database,
    failure::Failure,
    grants::{PAGE, bytes, parts, those},
};
use crate::{
    connect::{GrantKey, Key, Of, Row},
    id,
    subject::Owner,
    vault::{Kid, Mac},
};

/// Flows of one owner that are kept.
const FLOWS: i64 = 16;

const COLUMNS: &str =
    "kind, one, two, three, record, version, kid, sealed, tenant, user, server, expires_at";

/// The table. A row is found with its kind and up to three words; whose it is stands beside them where it is anybody's.
pub(super) fn tables(transaction: &Transaction<'_>, _mac: &Mac) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "CREATE TABLE sealed (
            record BLOB PRIMARY KEY,
            kind TEXT NOT NULL,
            one TEXT NOT NULL,
            two TEXT NOT NULL,
            three TEXT NOT NULL,
            version INTEGER NOT NULL,
            kid BLOB NOT NULL,
            sealed BLOB NOT NULL,
            tenant TEXT,
            user TEXT,
            server TEXT,
            expires_at INTEGER,
            UNIQUE (kind, one, two, three)
        ) STRICT;
        CREATE INDEX sealed_of_servers ON sealed (server);
        CREATE INDEX sealed_of_owners ON sealed (tenant, user);",
    )
}

pub(super) fn read(connection: &Connection, key: &Key, now: i64) -> Result<Option<Row>, Failure> {
    let (kind, [one, two, three]) = place(key);
    let row = connection
        .prepare(&format!(
            "SELECT {COLUMNS} FROM sealed WHERE kind = ?1 AND one = ?2 AND two = ?3 AND three = ?4
                AND (expires_at IS NULL OR expires_at > ?5)"
        ))?
        .query_row(params![kind, one, two, three, now], found)
        .optional()?;
    Ok(row.map(|(_, row)| row))
}

pub(super) fn page(
    connection: &Connection,
    of: &Of,
    after: Option<Uuid>,
) -> Result<Vec<(Key, Row)>, Failure> {
    let (tenant, user, server) = parts(of);
    let mut statement = connection.prepare(&format!(
        "SELECT {COLUMNS} FROM sealed
        WHERE {} AND (?4 IS NULL OR record > ?4) ORDER BY record LIMIT ?5",
        those(of)
    ))?;
    let after = after.map(Uuid::into_bytes);
    let rows = statement.query_map(params![tenant, user, server, after, PAGE], found)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn replace(
    database: &mut Database,
    key: &Key,
    expected: Option<u64>,
    row: &Row,
    now: i64,
) -> Result<bool, Failure> {
    let transaction = database.change()?;
    let over = "DELETE FROM sealed WHERE expires_at <= ?1";
    transaction.execute(over, [now])?;
    if let Some(flow) = &row.flow {
        make_room(&transaction, &flow.owner)?;
    }
    if !write(&transaction, key, expected, row)? {
        return Ok(false);
    }
    transaction.commit()?;
    Ok(true)
}

pub(super) fn take(database: &mut Database, key: &Key, now: i64) -> Result<Option<Row>, Failure> {
    let (kind, [one, two, three]) = place(key);
    let transaction = database.change()?;
    let taken = transaction
        .query_row(
            &format!(
                "DELETE FROM sealed WHERE kind = ?1 AND one = ?2 AND two = ?3 AND three = ?4
                RETURNING {COLUMNS}"
            ),
            params![kind, one, two, three],
            found,
        )
        .optional()?;
    transaction.commit()?;
    let row = taken.map(|(_, row)| row);
    Ok(row.filter(|row| row.expires_at.is_none_or(|end| end > now)))
}

pub(super) fn flows(
    connection: &Connection,
    key: &GrantKey,
    now: i64,
) -> Result<Option<(u32, i64)>, Failure> {
    let (flows, last): (u32, Option<i64>) = connection.query_row(
        "SELECT count(*), max(expires_at) FROM sealed
        WHERE kind = 'pending' AND tenant = ?1 AND user = ?2 AND server = ?3 AND expires_at > ?4",
        params![key.owner.tenant, key.owner.user, key.server, now],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(last.map(|last| (flows, last)))
}

/// Takes the oldest flows of an owner away until one more may come.
fn make_room(transaction: &Transaction<'_>, owner: &Owner) -> rusqlite::Result<()> {
    transaction.execute(
        "DELETE FROM sealed WHERE record IN (
            SELECT record FROM sealed WHERE kind = 'pending' AND tenant = ?1 AND user = ?2
            ORDER BY expires_at DESC, rowid DESC LIMIT -1 OFFSET ?3
        )",
        params![owner.tenant, owner.user, FLOWS - 1],
    )?;
    Ok(())
}

fn write(
    transaction: &Transaction<'_>,
    key: &Key,
    expected: Option<u64>,
    row: &Row,
) -> rusqlite::Result<bool> {
    let (kind, [one, two, three]) = place(key);
    let (tenant, user, server) = whose(key, row);
    let new = format!(
        "INSERT INTO sealed ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
        ON CONFLICT DO NOTHING"
    );
    let other = "UPDATE sealed SET record = ?5, version = ?6, kid = ?7, sealed = ?8, tenant = ?9, user = ?10,
            server = ?11, expires_at = ?12
        WHERE kind = ?1 AND one = ?2 AND two = ?3 AND three = ?4 AND version = ?13";
    let expected = expected.map(u64::cast_signed);
    let (record, version) = (row.record.as_bytes(), row.version.cast_signed());
    let mut values: Vec<&dyn ToSql> = vec![
        &kind,
        &one,
        &two,
        &three,
        record,
        &version,
        &row.kid.0,
        &row.sealed,
        &tenant,
        &user,
        &server,
        &row.expires_at,
    ];
    if let Some(expected) = &expected {
        values.push(expected);
    }
    let sql = if expected.is_none() { &new } else { other };
    Ok(transaction.execute(sql, &*values)? == 1)
}

/// With what a row is found: its kind, and words.
fn place(key: &Key) -> (&'static str, [String; 3]) {
    let words = |words: [&str; 3]| words.map(str::to_owned);
    match key {
        Key::Client {
            tenant,
            issuer,
            redirect_uri,
        } => ("client", words([tenant, issuer, redirect_uri])),
        Key::Discovery { server, endpoint } => ("discovery", words([server, endpoint, ""])),
        Key::Secret(key) => {
            let owner = &key.owner;
            ("secret", words([&owner.tenant, &owner.user, &key.server]))
        }
        Key::Shared { tenant, server } => ("shared", words([tenant, server, ""])),
        Key::Pending { state } => ("pending", words([&id::hex(state), "", ""])),
    }
}

/// The tenant, the user and the server that a row is of.
fn whose<'a>(key: &'a Key, row: &'a Row) -> (Option<&'a str>, Option<&'a str>, Option<&'a str>) {
    let of = |key: &'a GrantKey| {
        let owner = &key.owner;
        (Some(&*owner.tenant), Some(&*owner.user), Some(&*key.server))
    };
    match key {
        Key::Client { .. } => (None, None, None),
        Key::Discovery { server, .. } => (None, None, Some(server)),
        Key::Secret(key) => of(key),
        Key::Shared { tenant, server } => (Some(tenant), None, Some(server)),
        Key::Pending { .. } => row.flow.as_ref().map_or((None, None, None), of),
    }
}

fn found(row: &rusqlite::Row<'_>) -> rusqlite::Result<(Key, Row)> {
    let kind: String = row.get(0)?;
    let [one, two, three]: [Arc<str>; 3] = [row.get(1)?, row.get(2)?, row.get(3)?];
    let key = match kind.as_str() {
        "client" => Key::Client {
            tenant: one,
            issuer: two,
            redirect_uri: three,
        },
        "discovery" => Key::Discovery {
            server: one,
            endpoint: two,
        },
        "secret" => Key::Secret(GrantKey {
            owner: Owner {
                tenant: one,
                user: two,
            },
            server: three,
        }),
        "shared" => Key::Shared {
            tenant: one,
            server: two,
        },
        _ => Key::Pending {
            state: digest(&one),
        },
    };
    let row = sealed(row, matches!(key, Key::Pending { .. }))?;
    Ok((key, row))
}

fn sealed(row: &rusqlite::Row<'_>, flow: bool) -> rusqlite::Result<Row> {
    let of = || -> rusqlite::Result<Option<GrantKey>> {
        let (tenant, user, server) = (row.get(8)?, row.get(9)?, row.get(10)?);
        let (Some(tenant), Some(user), Some(server)) = (tenant, user, server) else {
            return Ok(None);
        };
        let owner = Owner { tenant, user };
        Ok(Some(GrantKey { owner, server }))
    };
    Ok(Row {
        record: Uuid::from_bytes(bytes(row, 4)?),
        version: row.get::<_, i64>(5)?.cast_unsigned(),
        kid: Kid(bytes(row, 6)?),
        sealed: row.get(7)?,
        flow: if flow { of()? } else { None },
        expires_at: row.get(11)?,
    })
}

/// What 64 hexadecimal digits say; zeros, of which there is no state, where they are others.
fn digest(text: &str) -> [u8; 32] {
    let mut digest = [0; 32];
    for (at, byte) in digest.iter_mut().enumerate() {
        let pair = text.get(2 * at..2 * at + 2);
        let value = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let Some(value) = value else {
            return [0; 32];
        };
        *byte = value;
    }
    digest
}
