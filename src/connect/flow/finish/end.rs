//! What comes of a flow that was used up: a connection, or a refusal.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::denied;
use crate::{
    audit::{Kind, OutcomeKind},
    connect::{
        Error, GrantKey, GrantRow, GrantState, Inner, disconnect,
        flow::{
            Finished,
            pending::Pending,
            return_to::{self, Status},
        },
        found::clients,
        kept::grant::{self, Payload},
        provider::token::{self, Code, Failure, Tokens},
        tell,
    },
    deadline::Deadline,
    id,
    policy::Permit,
};

/// A flow that was used up.
pub(super) struct End {
    pub(super) inner: Arc<Inner>,
    pub(super) permit: Permit,
    pub(super) key: GrantKey,
    pub(super) pending: Pending,
    pub(super) deadline: Deadline,
}

impl End {
    /// Exchanges the code, or tells of what came instead of one.
    pub(super) async fn end(
        self,
        code: Result<Zeroizing<String>, Error>,
    ) -> Result<Finished, Error> {
        let result = match code {
            Ok(code) => self.exchange(&code).await,
            Err(denied) => {
                self.doubt(&denied).await;
                Err(denied)
            }
        };
        let server = self.key.server.clone();
        let status = match &result {
            Ok(()) => Status::Connected,
            Err(Error::Denied { .. }) => Status::Denied,
            Err(_) => Status::Failed,
        };
        if let Err(error) = &result {
            tell::refused(&self.inner, &self.key.owner, Some(&server), error);
        }
        let place = self.pending.return_to.as_deref();
        let return_to = place.and_then(|place| return_to::told(place, status, &server));
        match result {
            Err(error) if return_to.is_none() => Err(error),
            _ => Ok(Finished { server, return_to }),
        }
    }

    /// A person who said no was asked by a provider that knows the client; anything else leaves that open.
    async fn doubt(&self, denied: &Error) {
        let (inner, discovered) = (&self.inner, &self.pending.discovered);
        match denied {
            Error::Denied { error, .. } if error == "access_denied" => {
                clients::worked(inner, &self.permit, discovered).await;
            }
            _ => clients::doubted(inner, &self.permit, discovered).await,
        }
    }

    async fn exchange(&self, code: &str) -> Result<(), Error> {
        let Self {
            inner,
            permit,
            pending,
            ..
        } = self;
        let code = Code {
            code,
            verifier: &pending.verifier,
            redirect_uri: &pending.redirect_uri,
            resource: pending.resource.as_deref(),
        };
        let (client, discovered) = (&pending.client, &pending.discovered);
        let exchanged = token::exchange(
            &inner.egress,
            permit,
            client,
            discovered,
            code,
            self.deadline,
        )
        .await;
        match exchanged {
            Ok(tokens) => {
                self.keep(tokens).await?;
                clients::worked(inner, permit, discovered).await;
                Ok(())
            }
            Err(failure) => {
                let is_dead = matches!(
                    failure,
                    Failure::Terminal {
                        client_dead: true,
                        ..
                    }
                );
                if is_dead {
                    clients::died(inner, permit, &discovered.issuer, client).await;
                } else {
                    clients::doubted(inner, permit, discovered).await;
                }
                Err(self.failed(failure))
            }
        }
    }

    fn failed(&self, failure: Failure) -> Error {
        let server = self.key.server.clone();
        match failure {
            Failure::Terminal {
                error, description, ..
            } => denied(&error, description.as_deref()),
            Failure::Transient { what, .. } => Error::Transient { server, what },
            Failure::Egress(source) => Error::Egress { server, source },
        }
    }

    /// Seals the connection and puts it in the place of what was there.
    async fn keep(&self, tokens: Tokens) -> Result<(), Error> {
        let inner = &self.inner;
        let payload = self.payload(tokens);
        let mut row = GrantRow {
            record: id::ordered(inner.clock.now()),
            key: self.key.clone(),
            grant: id::random(),
            version: 1,
            issuer: payload.issuer.as_str().into(),
            client: payload.client.id.as_str().into(),
            resource: payload.resource_sent.as_deref().map(Arc::from),
            state: GrantState::Active,
            expires_at: payload.expires_at,
            next_try: None,
            lease: None,
            kid: inner.vault.primary(),
            sealed: Vec::new(),
            created_at: payload.obtained_at,
        };
        row.sealed = grant::seal(&inner.vault, &row, &payload);
        row.kid = grant::kid(&row.sealed);
        let replaced = match inner.records.put_grant(row.clone()).await {
            Ok(replaced) => replaced,
            Err(error) => {
                // Nobody could ever use them.
                disconnect::revoke_row(inner, &self.permit, &row).await;
                return Err(error.into());
            }
        };
        inner.forget(&self.key);
        inner.note(
            Kind::Connect,
            "connected",
            &self.key,
            (OutcomeKind::Allowed, None),
        );
        // Where there is no room, the next call tells what the server shows.
        drop(inner.made.try_send(self.permit.clone()));
        if let Some(replaced) = replaced {
            self.revoke(replaced, &row);
        }
        Ok(())
    }

    fn payload(&self, tokens: Tokens) -> Payload {
        let now = self.inner.now();
        let after = |seconds: u64| now.saturating_add_unsigned(seconds);
        let pending = &self.pending;
        let discovered = &pending.discovered;
        Payload {
            expires_at: tokens.expires_in.map(after),
            refresh_expires_at: tokens.refresh_expires_in.map(after),
            requested_scopes: pending.scopes.clone(),
            // Left out, it is what was asked for (RFC 6749, section 5.1).
            granted_scopes: tokens.scopes.unwrap_or_else(|| pending.scopes.clone()),
            access: tokens.access,
            refresh: tokens.refresh,
            issuer: discovered.issuer.clone(),
            token_endpoint: discovered.token_endpoint.clone(),
            revocation_endpoint: discovered.revocation_endpoint.clone(),
            client: pending.client.clone(),
            resource_sent: pending.resource.clone(),
            endpoint: pending.endpoint.clone(),
            obtained_at: now,
            wanted: Vec::new(),
            tried: pending.tried.clone(),
            refused_at: None,
        }
    }

    /// Revokes what was replaced, in the background. To one client of one issuer, providers give the same grant again:
    /// the old tokens cannot be revoked there without the new ones, and end by themselves.
    fn revoke(&self, replaced: GrantRow, new: &GrantRow) {
        if (&replaced.issuer, &replaced.client) == (&new.issuer, &new.client) {
            return;
        }
        let (inner, permit) = (self.inner.clone(), self.permit.clone());
        let revoke = async move {
            let revoked = disconnect::revoke_row(&inner, &permit, &replaced).await;
            tell::revoked(&inner, &replaced.key, revoked);
        };
        self.inner.tasks.spawn_on(revoke, &self.inner.runtime);
    }
}
