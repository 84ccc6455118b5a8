//! What becomes of a token request: its result is saved before anybody uses it, its failure says what is tried next.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{
    Ask, Claim, Flight,
    flights::Ended,
    spool::{self, Held, Settled},
};
use crate::{
    audit::{Kind, OutcomeKind},
    connect::{
        Earlier, GrantState, Inner, RecordsError, Save,
        found::clients,
        kept::{
            grant::{self, Payload},
            known::Known,
        },
        provider::token::{Failure, Tokens},
    },
    policy::Permit,
    refusal::Code,
    vault::Credential,
};

/// The first and the longest pause between attempts to save a result.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

impl Flight {
    /// Keeps new tokens.
    pub(super) async fn renewed(
        &self,
        claim: Claim,
        mut payload: Payload,
        tokens: Tokens,
        asked_at: i64,
    ) -> Result<Ended, RecordsError> {
        let inner = &self.inner;
        inner.patience.answered(&self.key, &payload.token_endpoint);
        let consumed = payload.refresh_digest().unwrap_or_default();
        renew(&mut payload, tokens, asked_at);
        if matches!(self.ask, Ask::Refused(_))
            && let Some(credential) = Credential::bearer(payload.access.as_bytes())
        {
            inner.patience.forced(&self.key, *credential.digest());
        }
        let save = self.sealed(&claim, &payload, GrantState::Active);
        let known = Arc::new(Known::of(inner, save.row.clone()));
        let held = Arc::new(Held::new(known.clone(), consumed));
        let settled = match inner.records.save(&save).await {
            Ok(true) => {
                inner.cache.put(&self.key, known);
                Ok(Settled::Saved)
            }
            // The row was claimed by somebody else, or is gone, or is another connection.
            Ok(false) => spool::settle(inner, Some(&self.permit), &held).await,
            Err(error) => Err(error),
        };
        let result = match settled {
            Ok(Settled::Saved) => "refreshed",
            // Somebody else's result counts, which is on record as theirs.
            Ok(Settled::Newer | Settled::Revoked | Settled::Orphan) => {
                inner.metrics.connect_refreshed("overtaken");
                return Ok(Ended::Settled);
            }
            Err(error) => {
                tracing::error!(%error, server = %self.key.server, "new tokens cannot be saved; they are kept in the spool");
                self.spooled(held).await;
                "spooled"
            }
        };
        inner.metrics.connect_refreshed(result);
        let refreshed = (OutcomeKind::Allowed, None);
        inner.note(Kind::Credential, "refreshed", &self.key, refreshed);
        Ok(Ended::Settled)
    }

    /// Waits until a result that the database does not take is on the local disk, or in the database after all. From the
    /// disk it goes to the database whenever that works again.
    async fn spooled(&self, held: Arc<Held>) {
        let inner = &self.inner;
        let mut pause = PAUSES.0;
        loop {
            match inner.spool.keep(inner, held.clone()).await {
                Ok(()) => break,
                Err(error) => tracing::error!(%error, "the spool cannot be written"),
            }
            let settled = spool::settle(inner, Some(&self.permit), &held).await;
            if settled.is_ok() || inner.closing.is_cancelled() {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
        let saving = save_later(inner.clone(), Some(self.permit.clone()), held);
        inner.tasks.spawn_on(saving, &inner.runtime);
    }

    /// Decides what a failure means for the connection.
    pub(super) async fn failed(
        &self,
        claim: Claim,
        payload: Payload,
        failure: Failure,
    ) -> Result<Ended, RecordsError> {
        let endpoint = &payload.token_endpoint;
        match failure {
            Failure::Terminal { client_dead, .. } => {
                self.inner.patience.answered(&self.key, endpoint);
                let reason = match claim.earlier {
                    _ if client_dead => "client_dead",
                    Earlier::Unknown => "rotation_lost",
                    Earlier::Known => "revoked",
                };
                self.refused(claim, payload, reason).await
            }
            Failure::Transient {
                retry_after,
                unsent,
                answered,
                what,
            } => {
                let patience = &self.inner.patience;
                let mut pause = patience.failed(&self.key, endpoint, retry_after);
                if !unsent && !answered && matches!(self.ask, Ask::Ahead) {
                    // The provider may have taken the refresh token: to use it again could end the token that still works.
                    pause = pause.max(self.rest(&payload));
                }
                self.put_off(&claim, pause, !unsent).await?;
                Ok(Ended::Later(what.into()))
            }
            Failure::Egress(error) => {
                let pause = self.inner.patience.failed(&self.key, endpoint, None);
                self.put_off(&claim, pause, false).await?;
                Ok(Ended::Unusable(error.to_string().into()))
            }
        }
    }

    /// The provider takes the refresh token no more: it goes, and the access token stays until its end.
    async fn refused(
        &self,
        claim: Claim,
        mut payload: Payload,
        reason: &'static str,
    ) -> Result<Ended, RecordsError> {
        let inner = &self.inner;
        let client = payload.client.clone();
        payload.refresh = None;
        payload.refresh_expires_at = None;
        let save = self.sealed(&claim, &payload, GrantState::NeedsReconnect(reason));
        // Where the row is another by now, that one counts, and the refusal was of a token that is gone.
        let ours = inner.records.save(&save).await?;
        inner.cache.forget(&self.key);
        if ours {
            inner.metrics.connect_refreshed("refused");
            let ended = (OutcomeKind::Refused, Some(Code::ConnectAgain));
            inner.note(Kind::Credential, "refresh_failed", &self.key, ended);
            inner.note(Kind::Connect, "reconnect_needed", &self.key, ended);
        }
        if reason == "client_dead" {
            // Every connection of the client is looked at, which nobody here has to wait for.
            let (all, permit) = (inner.clone(), self.permit.clone());
            let died = async move { clients::died(&all, &permit, &payload.issuer, &client).await };
            inner.tasks.spawn_on(died, &inner.runtime);
        }
        Ok(Ended::Settled)
    }

    /// How long the access token lasts yet.
    fn rest(&self, payload: &Payload) -> Duration {
        let rest = payload.expires_at.map(|end| end - self.inner.now());
        Duration::from_secs(rest.unwrap_or_default().max(0).unsigned_abs())
    }

    /// Nobody knows, or nothing was sent: the connection stays, and is left alone for a while.
    async fn put_off(
        &self,
        claim: &Claim,
        pause: Duration,
        sent: bool,
    ) -> Result<(), RecordsError> {
        let inner = &self.inner;
        let mut row = claim.row.clone();
        let seconds = pause.as_secs().max(1);
        row.next_try = Some(inner.now().saturating_add_unsigned(seconds));
        let save = Save {
            record: row.record,
            fence: claim.fence,
            row,
            unknown: sent || claim.earlier == Earlier::Unknown,
        };
        inner.records.save(&save).await?;
        inner.cache.forget(&self.key);
        inner.metrics.connect_refreshed("put_off");
        let ended = (OutcomeKind::Failed, Some(Code::ConnectTransient));
        inner.note(Kind::Credential, "refresh_failed", &self.key, ended);
        Ok(())
    }

    /// The row as it is saved with `payload`: of the next version.
    fn sealed(&self, claim: &Claim, payload: &Payload, state: GrantState) -> Save {
        let mut row = claim.row.clone();
        row.version += 1;
        row.state = state;
        row.expires_at = payload.expires_at;
        row.next_try = None;
        row.sealed = grant::seal(&self.inner.vault, &row, payload);
        row.kid = grant::kid(&row.sealed);
        Save {
            record: row.record,
            fence: claim.fence,
            row,
            unknown: false,
        }
    }
}

/// Brings a result into the database as soon as that works; what is left when the process ends is taken up by the next.
pub(in crate::connect) async fn save_later(
    inner: Arc<Inner>,
    permit: Option<Permit>,
    held: Arc<Held>,
) {
    let mut pause = PAUSES.0;
    loop {
        // A process that ends tries once more.
        let last = inner.closing.is_cancelled();
        let settled = spool::settle(&inner, permit.as_ref(), &held).await;
        if settled.is_ok() || last {
            return;
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = inner.closing.cancelled() => {}
        }
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Takes over what a provider gave; what it left out stays as it was (RFC 6749, section 6).
fn renew(payload: &mut Payload, tokens: Tokens, asked_at: i64) {
    let ends =
        |seconds: Option<u64>| seconds.map(|seconds| asked_at.saturating_add_unsigned(seconds));
    payload.access = tokens.access;
    payload.expires_at = ends(tokens.expires_in);
    if tokens.refresh.is_some() {
        payload.refresh = tokens.refresh;
        payload.refresh_expires_at = ends(tokens.refresh_expires_in);
    } else if tokens.refresh_expires_in.is_some() {
        payload.refresh_expires_at = ends(tokens.refresh_expires_in);
    }
    if let Some(scopes) = tokens.scopes {
        payload.granted_scopes = scopes;
    }
    payload.obtained_at = asked_at;
    payload.refused_at = None;
}
