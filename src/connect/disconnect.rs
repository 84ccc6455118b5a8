//! The end of connections: revoked at the provider (RFC 7009), deleted whatever comes of that.

use std::{
    collections::{BTreeSet, HashSet},
    pin::pin,
    sync::Arc,
};

use futures_util::{StreamExt, stream};

use super::{
    Error, GrantKey, GrantRow, Inner, Key, Of,
    credential::secrets,
    found::{clients, discovered},
    kept::grant,
    provider::revoke,
    tell,
};
use crate::{
    deadline::{Deadline, until},
    policy::Permit,
    subject::Owner,
};

/// Connections that are revoked at a time.
const AT_ONCE: usize = 8;

/// Servers of one owner that are listed, as far as whole pages of rows allow.
const MOST: usize = 1024;

/// What became of a connection at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// It revoked the tokens.
    Yes,
    /// It refused, or was out of reach.
    No,
    /// It has no way to, or the operator turned it off, or there was nothing to revoke.
    Unsupported,
}

impl Revoked {
    /// The word in a record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unsupported => "unsupported",
        }
    }
}

/// What there was of a server that is forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Connections of users, and secrets that they entered.
    pub connections: u64,
    /// Of those, how many the provider revoked.
    pub revoked: u64,
    /// Secrets that the operator kept in the vault for everybody of a tenant.
    pub shared: u64,
}

/// Ends a connection. It is taken away first, so that what a refresh under way brings is revoked by that and never kept.
/// Without a permit for its server nothing is sent to its provider.
pub(super) async fn disconnect(
    inner: &Inner,
    key: &GrantKey,
    permit: Option<&Permit>,
    deadline: Deadline,
) -> Result<Revoked, Error> {
    let had_secret = secrets::remove(inner, key).await?;
    let row = inner.records.remove_grant(key, None).await?;
    inner.forget(key);
    let revoked = match (&row, permit) {
        (Some(row), Some(permit)) => {
            let revoked = until(deadline.instant(), pin!(revoke_row(inner, permit, row))).await;
            revoked.unwrap_or(Revoked::No)
        }
        (Some(_), None) => Revoked::No,
        (None, _) => Revoked::Unsupported,
    };
    if had_secret || row.is_some() {
        tell::disconnected(inner, key, revoked);
    }
    Ok(revoked)
}

/// The servers to which an owner has a connection or a secret, by name, at most 1,024.
pub(super) async fn held(inner: &Inner, owner: &Owner) -> Result<BTreeSet<Arc<str>>, Error> {
    let of = Of::Owner(owner.clone());
    let mut names = BTreeSet::new();
    let mut after = None;
    loop {
        let rows = inner.records.grants(&of, after).await?;
        after = rows.last().map(|row| row.record);
        names.extend(rows.into_iter().map(|row| row.key.server));
        if after.is_none() || names.len() >= MOST {
            break;
        }
    }
    let mut after = None;
    loop {
        let rows = inner.records.rows(&of, after).await?;
        after = rows.last().map(|(_, row)| row.record);
        names.extend(rows.into_iter().filter_map(|(key, _)| match key {
            Key::Secret(key) => Some(key.server),
            _ => None,
        }));
        if after.is_none() || names.len() >= MOST {
            return Ok(names);
        }
    }
}

/// Ends every connection to the permit's server and forgets all that is known of it; past `deadline` connections are
/// deleted only.
pub(super) async fn forget(
    inner: &Inner,
    permit: &Permit,
    deadline: Deadline,
) -> Result<Forgotten, Error> {
    let of = Of::Server(permit.server().name.clone());
    let mut clients = clients_of_server(inner, permit).await?;
    let mut forgotten = Forgotten::default();
    let mut after = None;
    loop {
        let rows = inner.records.grants(&of, after).await?;
        let Some(last) = rows.last().map(|row| row.record) else {
            break;
        };
        clients.extend(rows.iter().map(|row| client_of(inner, row)));
        let ends: Vec<_> = stream::iter(rows)
            .map(|row| end(inner, permit, row, deadline))
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        for end in ends {
            let end = end?;
            forgotten.connections += u64::from(end.is_some());
            forgotten.revoked += u64::from(end == Some(Revoked::Yes));
        }
        after = Some(last);
    }
    forget_rows(inner, &of, &mut forgotten).await?;
    for key in clients {
        clients::forget_unused(inner, permit, &key, deadline).await?;
    }
    Ok(forgotten)
}

/// Asks the provider to revoke the tokens of a connection that is gone here.
pub(super) async fn revoke_row(inner: &Inner, permit: &Permit, row: &GrantRow) -> Revoked {
    let Ok(payload) = grant::open(&inner.vault, row) else {
        return Revoked::No;
    };
    let endpoint = payload.revocation_endpoint.as_deref();
    let refresh = payload.refresh.as_ref().map(|token| token.as_str());
    let access = Some(payload.access.as_str()).filter(|token| !token.is_empty());
    revoke::revoke(
        &inner.egress,
        permit,
        &payload.client,
        endpoint,
        refresh,
        access,
    )
    .await
}

/// Ends one of many connections; `None` where somebody else did.
async fn end(
    inner: &Inner,
    permit: &Permit,
    row: GrantRow,
    deadline: Deadline,
) -> Result<Option<Revoked>, Error> {
    let row = inner
        .records
        .remove_grant(&row.key, Some(row.grant))
        .await?;
    let Some(row) = row else { return Ok(None) };
    inner.forget(&row.key);
    let revoked = if deadline.passed() {
        Revoked::No
    } else {
        revoke_row(inner, permit, &row).await
    };
    tell::disconnected(inner, &row.key, revoked);
    Ok(Some(revoked))
}

/// Takes away secrets, flows and what was discovered; counts the secrets.
async fn forget_rows(inner: &Inner, of: &Of, forgotten: &mut Forgotten) -> Result<(), Error> {
    let mut after = None;
    loop {
        let rows = inner.records.rows(of, after).await?;
        let Some(last) = rows.last().map(|(_, row)| row.record) else {
            return Ok(());
        };
        for (key, _) in rows {
            let taken = inner.records.take(&key).await?;
            match (&key, taken) {
                (Key::Secret(key), Some(_)) => {
                    forgotten.connections += 1;
                    inner.forget(key);
                    tell::disconnected(inner, key, Revoked::Unsupported);
                }
                // It was the operator's, whose removal of the server is on record.
                (Key::Shared { .. }, Some(_)) => {
                    forgotten.shared += 1;
                    inner.secrets.forget(&key);
                }
                _ => {}
            }
        }
        after = Some(last);
    }
}

/// Clients of the tenants that the server is for, at the issuer that is pinned.
async fn clients_of_server(inner: &Inner, permit: &Permit) -> Result<HashSet<Key>, Error> {
    let Some(pinned) = discovered::pinned(inner, permit).await? else {
        return Ok(HashSet::new());
    };
    let redirect_uri: Arc<str> = inner.terms.load().redirect_uri().into();
    let issuer: Arc<str> = pinned.issuer.into();
    let of = |tenant: &Arc<str>| Key::Client {
        tenant: tenant.clone(),
        issuer: issuer.clone(),
        redirect_uri: redirect_uri.clone(),
    };
    Ok(permit.server().tenants.iter().map(of).collect())
}

fn client_of(inner: &Inner, row: &GrantRow) -> Key {
    Key::Client {
        tenant: row.key.owner.tenant.clone(),
        issuer: row.issuer.clone(),
        redirect_uri: inner.terms.load().redirect_uri().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_provider_did_is_one_word() {
        let words = [Revoked::Yes, Revoked::No, Revoked::Unsupported].map(Revoked::as_str);
        assert_eq!(words, ["yes", "no", "unsupported"]);
    }
}
