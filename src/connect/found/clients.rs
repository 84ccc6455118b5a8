//! Registered clients: one for each tenant, issuer and redirect URI, shared by the tenant's users (RFC 7591). What the
//! operator registered, and what the client id metadata document stands for, needs no keeping.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    connect::{
        self, Error, GrantRow, Inner, Key, Of, RecordsError, Terms,
        kept::{
            self, Kept,
            change::{self, End},
        },
        provider::{
            discovery::Discovered,
            register::{self, Client, Origin, Probe},
        },
        terms::FLOW,
    },
    deadline::Deadline,
    policy::{OAuth, Permit, Registration},
};

/// How often a registration is tried while others try it too.
const TRIES: usize = 4;

#[derive(Clone, Serialize, Deserialize)]
struct Registered {
    client: Client,
    /// The provider does not know it any more.
    dead: bool,
    /// From then on a flow that was begun with it counts as lost, in Unix seconds; `None` since one came through.
    doubted_from: Option<i64>,
}

/// The client to begin a flow with. `again` where this person's last flow has not come back.
///
/// # Errors
///
/// None can be registered, or the database does not work.
pub(in crate::connect) async fn get(
    inner: &Inner,
    permit: &Permit,
    discovered: &Discovered,
    again: bool,
    deadline: Deadline,
) -> Result<Client, Error> {
    let terms = inner.terms.load_full();
    let knobs = discovered.knobs(connect::knobs(permit)?);
    if !is_dynamic(&knobs, &terms, discovered) {
        return register::client(&inner.egress, permit, discovered, &terms, deadline).await;
    }
    let key = key(permit, discovered, &terms);
    for _ in 0..TRIES {
        let kept = kept::read::<Registered>(inner, &key).await?;
        let flow = Begin {
            inner,
            permit,
            discovered,
            key: &key,
            deadline,
        };
        if let Some(client) = flow.known(kept.as_ref(), again).await? {
            return Ok(client);
        }
        if let Some(client) = flow.register(kept.map(|kept| kept.version), &terms).await? {
            return Ok(client);
        }
    }
    Err(Error::Transient {
        server: permit.server().name.clone(),
        what: "its client is being registered by somebody else; try again".to_owned(),
    })
}

/// Whether there is a client to begin a flow with, or a way to one; nothing is sent.
///
/// # Errors
///
/// Only the operator can go on, or the database does not work.
pub(in crate::connect) async fn possible(
    inner: &Inner,
    permit: &Permit,
    discovered: &Discovered,
) -> Result<(), Error> {
    let terms = inner.terms.load_full();
    let Err(lacking) = register::possible(permit, discovered, &terms) else {
        return Ok(());
    };
    // One that was registered once still serves where nobody else can be.
    if is_dynamic(
        &discovered.knobs(connect::knobs(permit)?),
        &terms,
        discovered,
    ) {
        let key = key(permit, discovered, &terms);
        let kept = kept::read::<Registered>(inner, &key).await?;
        let registered = kept.and_then(|kept| kept.value);
        if registered.is_some_and(|registered| !registered.dead) {
            return Ok(());
        }
    }
    Err(lacking)
}

/// A flow came through with the client of `discovered`: nothing is doubted any more.
pub(in crate::connect) async fn worked(inner: &Inner, permit: &Permit, discovered: &Discovered) {
    note(inner, permit, discovered, |registered| {
        registered.doubted_from.take().is_some()
    })
    .await;
}

/// A flow failed: the next one asks first whether the client is still known.
pub(in crate::connect) async fn doubted(inner: &Inner, permit: &Permit, discovered: &Discovered) {
    let now = inner.now();
    note(inner, permit, discovered, |registered| {
        registered.doubted_from = Some(now);
        true
    })
    .await;
}

/// The provider does not know a client any more: the next flow registers another, and every connection that was made
/// with this one has to be made again.
pub(in crate::connect) async fn died(
    inner: &Inner,
    permit: &Permit,
    issuer: &str,
    client: &Client,
) {
    if client.origin != Origin::Dynamic {
        return;
    }
    let tenant = &permit.owner().tenant;
    let key = Key::Client {
        tenant: tenant.clone(),
        issuer: issuer.into(),
        redirect_uri: inner.terms.load().redirect_uri().into(),
    };
    let marked = mark_dead(inner, &key, &client.id).await;
    let ended = end_grants(inner, tenant, issuer, &client.id).await;
    if let Err(error) = marked.and(ended) {
        tracing::error!(%error, %issuer, "a dead client could not be marked everywhere");
    }
}

/// Forgets a client that no connection uses any more, here and at the provider. `permit` is of a server of its issuer.
pub(in crate::connect) async fn forget_unused(
    inner: &Inner,
    permit: &Permit,
    key: &Key,
    deadline: Deadline,
) -> Result<(), RecordsError> {
    let Some(Kept { value, .. }) = kept::read::<Registered>(inner, key).await? else {
        return Ok(());
    };
    let Key::Client { tenant, issuer, .. } = key else {
        return Ok(());
    };
    let Some(registered) = value else {
        inner.records.take(key).await?;
        return Ok(());
    };
    let client = registered.client;
    let used = |row: &GrantRow| is_of(row, tenant, issuer, &client.id);
    if change::any(inner, &Of::Everyone, used).await? {
        return Ok(());
    }
    if inner.records.take(key).await?.is_some() {
        register::unregister(&inner.egress, permit, &client, deadline).await;
    }
    Ok(())
}

/// Whether a client is registered dynamically; [`register::client`] decides the rest.
fn is_dynamic(knobs: &OAuth, terms: &Terms, discovered: &Discovered) -> bool {
    let by_document = discovered.cimd_supported && terms.client_metadata_url.is_some();
    match knobs.registration {
        Registration::Dcr => true,
        Registration::Auto => knobs.client.is_none() && !by_document,
        Registration::Cimd | Registration::PreRegistered => false,
    }
}

fn key(permit: &Permit, discovered: &Discovered, terms: &Terms) -> Key {
    Key::Client {
        tenant: permit.owner().tenant.clone(),
        issuer: Arc::from(&*discovered.issuer),
        redirect_uri: terms.redirect_uri().into(),
    }
}

/// What a flow is begun for.
struct Begin<'a> {
    inner: &'a Inner,
    permit: &'a Permit,
    discovered: &'a Discovered,
    key: &'a Key,
    deadline: Deadline,
}

impl Begin<'_> {
    /// The client that is kept, where it can be used.
    async fn known(
        &self,
        kept: Option<&Kept<Registered>>,
        again: bool,
    ) -> Result<Option<Client>, Error> {
        let Some(Kept {
            value: Some(registered),
            version,
        }) = kept
        else {
            return Ok(None);
        };
        if registered.dead {
            return Ok(None);
        }
        let now = self.inner.now();
        let doubted = again || registered.doubted_from.is_some_and(|from| from <= now);
        if self.has_expired(&registered.client) || doubted && self.is_dead(&registered.client).await
        {
            let tenant = &self.permit.owner().tenant;
            let issuer = &self.discovered.issuer;
            end_grants(self.inner, tenant, issuer, &registered.client.id).await?;
            return Ok(None);
        }
        let mut next = registered.clone();
        let lost = now + FLOW.as_secs().cast_signed();
        // The first of several flows is lost first.
        let from = next.doubted_from.filter(|_| !doubted).unwrap_or(lost);
        if next.doubted_from.replace(from) != Some(from) {
            // Another flow that writes first says the same.
            kept::replace(self.inner, self.key, Some(*version), &next, None).await?;
        }
        Ok(Some(next.client))
    }

    /// Registers a client; `None` where somebody else did in the meantime, whose client is used then, and this one is
    /// given up.
    async fn register(&self, version: Option<u64>, terms: &Terms) -> Result<Option<Client>, Error> {
        let egress = &self.inner.egress;
        let client =
            register::client(egress, self.permit, self.discovered, terms, self.deadline).await?;
        if client.origin != Origin::Dynamic {
            return Ok(Some(client));
        }
        let lost = self.inner.now() + FLOW.as_secs().cast_signed();
        let registered = Registered {
            client,
            dead: false,
            doubted_from: Some(lost),
        };
        let kept = kept::replace(self.inner, self.key, version, &registered, None).await;
        if let Ok(true) = kept {
            return Ok(Some(registered.client));
        }
        register::unregister(egress, self.permit, &registered.client, self.deadline).await;
        kept?;
        Ok(None)
    }

    /// Whether its secret ends before a flow that begins now does.
    fn has_expired(&self, client: &Client) -> bool {
        let end = self.inner.now() + FLOW.as_secs().cast_signed();
        client.secret_expires_at.is_some_and(|at| at <= end)
    }

    async fn is_dead(&self, client: &Client) -> bool {
        let endpoint = &self.discovered.token_endpoint;
        let probe = register::probe(
            &self.inner.egress,
            self.permit,
            client,
            endpoint,
            self.deadline,
        );
        matches!(probe.await, Probe::Dead)
    }
}

/// Changes what is kept of a client, as far as nobody else does at the same time.
async fn note(
    inner: &Inner,
    permit: &Permit,
    discovered: &Discovered,
    edit: impl Fn(&mut Registered) -> bool,
) {
    let key = key(permit, discovered, &inner.terms.load());
    if let Err(error) = try_change(inner, &key, edit).await {
        tracing::warn!(%error, "what a flow told of its client was not kept");
    }
}

async fn mark_dead(inner: &Inner, key: &Key, id: &str) -> Result<(), RecordsError> {
    try_change(inner, key, |registered| {
        let changes = registered.client.id == id && !registered.dead;
        registered.dead |= changes;
        changes
    })
    .await
}

async fn try_change(
    inner: &Inner,
    key: &Key,
    edit: impl Fn(&mut Registered) -> bool,
) -> Result<(), RecordsError> {
    for _ in 0..TRIES {
        let Some(Kept {
            value: Some(mut registered),
            version,
        }) = kept::read::<Registered>(inner, key).await?
        else {
            return Ok(());
        };
        if !edit(&mut registered)
            || kept::replace(inner, key, Some(version), &registered, None).await?
        {
            return Ok(());
        }
    }
    Ok(())
}

async fn end_grants(
    inner: &Inner,
    tenant: &str,
    issuer: &str,
    client: &str,
) -> Result<(), RecordsError> {
    let of = |row: &GrantRow| is_of(row, tenant, issuer, client);
    change::end_all(inner, &Of::Everyone, of, End::ClientDead).await
}

fn is_of(row: &GrantRow, tenant: &str, issuer: &str, client: &str) -> bool {
    *row.key.owner.tenant == *tenant && *row.issuer == *issuer && *row.client == *client
}
