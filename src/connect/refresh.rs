//! Refreshing: at most one token request for a connection across tasks and processes, and no result that is lost.
//!
//! In this process one flight at a time looks after a connection; among processes a lease in the database says whose
//! turn it is. Under the lease the row is opened once more, the request is sent, and its result is durable before
//! anybody uses it.

pub(super) mod flights;
pub(super) mod lease;
mod result;
pub(super) mod spool;

pub(super) use result::save_later;

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use self::{
    flights::{Ended, Waiting},
    lease::{LATEST, Turn},
};
use super::{
    Claimed, Earlier, GrantKey, GrantRow, Inner, RecordsError, Save, inner,
    kept::{
        grant::Payload,
        known::{self, Known},
        life::Age,
    },
    provider::{
        register::{Client, Origin},
        token::{self, Refresh},
    },
};
use crate::{deadline::Deadline, policy::Permit};

/// How long the whole exchange with a provider may take.
const EXCHANGE: Duration = Duration::from_secs(10);

/// How long whoever needs a token waits for another process.
const PATIENCE: Duration = Duration::from_secs(10);

/// The first and the longest pause between looks at what another process does.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

/// What a flight is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ask {
    /// A token that is good, so that there is another in time. Nobody waits for another process.
    Ahead,
    /// A token in the place of one that is over.
    Over,
    /// A token in the place of the one with this digest, which a server refused.
    Refused([u8; 32]),
}

/// Begins a flight for the permit's connection, or joins the one that is under way. `None` where nothing new is begun.
pub(super) fn begin(inner: &Arc<Inner>, permit: &Permit, ask: Ask) -> Option<Waiting> {
    let key = inner::key(permit);
    flights::join(inner, &key, || {
        let flight = Flight {
            inner: inner.clone(),
            permit: permit.clone(),
            key: key.clone(),
            ask,
        };
        async move { flight.fly().await.unwrap_or_else(Ended::from) }
    })
}

/// Whether a flight could do something for a token that is still good. Without that, calls would begin one after the other.
pub(super) fn worthwhile(inner: &Inner, row: &GrantRow, payload: &Payload) -> bool {
    let now = inner.now();
    payload.refreshable(now)
        && lease::pause(row, now).is_none()
        && lease::turn(row, now) == Turn::Free
        && !inner.patience.troubled(&payload.token_endpoint)
}

struct Flight {
    inner: Arc<Inner>,
    permit: Permit,
    key: GrantKey,
    ask: Ask,
}

/// A row that this process has claimed.
struct Claim {
    row: GrantRow,
    fence: u64,
    earlier: Earlier,
    /// When it was asked for: the lease ends no earlier than its length after that.
    at: Instant,
}

impl Flight {
    async fn fly(&self) -> Result<Ended, RecordsError> {
        for held in self.inner.spool.of(&self.key) {
            spool::settle(&self.inner, Some(&self.permit), &held).await?;
        }
        let end = Instant::now() + PATIENCE;
        let mut pause = PAUSES.0;
        loop {
            let Some(known) = known::read(&self.inner, &self.key).await? else {
                return Ok(Ended::Settled);
            };
            let Some(payload) = known.open(&self.inner) else {
                return Ok(Ended::Settled);
            };
            if let Some(ended) = self.needless(&known, &payload) {
                return Ok(ended);
            }
            drop(payload);
            if let Some(claim) = self.claim(&known).await? {
                return self.exchange(claim).await;
            }
            if matches!(self.ask, Ask::Ahead) {
                return Ok(Ended::Settled);
            }
            if self.inner.closing.is_cancelled() {
                return Ok(Ended::Later("this process is ending".into()));
            }
            if Instant::now() + pause >= end {
                let what = "another process has been refreshing the connection for long";
                return Ok(Ended::Later(what.into()));
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Why no request is sent, where none is.
    fn needless(&self, known: &Known, payload: &Payload) -> Option<Ended> {
        let inner = &self.inner;
        let wanted = match self.ask {
            Ask::Ahead => known.age(inner) != Age::Fresh,
            Ask::Over => known.age(inner) == Age::Over,
            Ask::Refused(digest) => payload.shows(&digest),
        };
        if !wanted || !payload.refreshable(inner.now()) {
            return Some(Ended::Settled);
        }
        if let Some(seconds) = lease::pause(&known.row, inner.now()) {
            let what = format!("it failed just now and is asked again in {seconds} s");
            return Some(Ended::Later(what.into()));
        }
        if inner.patience.troubled(&payload.token_endpoint) {
            let what =
                "its token endpoint has failed again and again and is left alone for a while";
            return Some(Ended::Later(what.into()));
        }
        None
    }

    /// Takes the lease, unless it is somebody else's turn, or the row is another now.
    async fn claim(&self, known: &Known) -> Result<Option<Claim>, RecordsError> {
        let row = &known.row;
        match lease::turn(row, self.inner.now()) {
            Turn::Taken => return Ok(None),
            // Nobody knows whether the refresh token was used. To use it twice may end the token that still works.
            Turn::Abandoned if matches!(self.ask, Ask::Ahead) => return Ok(None),
            Turn::Abandoned | Turn::Free => {}
        }
        if self.inner.closing.is_cancelled() {
            return Ok(None);
        }
        let at = Instant::now();
        match lease::claim(&self.inner, row).await? {
            Claimed::Ours { row, earlier } => Ok(Some(Claim {
                fence: row.lease.as_ref().map_or(0, |lease| lease.fence),
                row: *row,
                earlier,
                at,
            })),
            Claimed::Theirs(_) => Ok(None),
        }
    }

    /// Asks for new tokens under a claim.
    async fn exchange(&self, claim: Claim) -> Result<Ended, RecordsError> {
        // What was read under the claim is what is refreshed.
        let known = Known::of(&self.inner, claim.row.clone());
        let Some(payload) = known.open(&self.inner) else {
            self.release(&claim).await?;
            return Ok(Ended::Settled);
        };
        if let Some(ended) = self.needless(&known, &payload) {
            self.release(&claim).await?;
            return Ok(ended);
        }
        let Some(refresh) = &payload.refresh else {
            self.release(&claim).await?;
            return Ok(Ended::Settled);
        };
        // This process was stopped: another may hold the lease by now, or will before an answer comes.
        if claim.at.elapsed() >= LATEST {
            self.release(&claim).await?;
            return Ok(Ended::Later("it was held up for too long".into()));
        }
        let asked_at = self.inner.now();
        let client = self.client(&payload);
        let asked = token::refresh(
            &self.inner.egress,
            &self.permit,
            &client,
            &payload.token_endpoint,
            Refresh {
                token: refresh,
                scopes: Some(&payload.requested_scopes),
                resource: payload.resource_sent.as_deref(),
            },
            Deadline::after(EXCHANGE),
        );
        match asked.await {
            Ok(tokens) => self.renewed(claim, payload, tokens, asked_at).await,
            Err(failure) => self.failed(claim, payload, failure).await,
        }
    }

    /// The client as it was registered; the operator's own has the secret that the policy gives it now.
    fn client(&self, payload: &Payload) -> Client {
        let mut client = payload.client.clone();
        let knobs = self.permit.server().auth.oauth();
        let own = knobs.and_then(|knobs| knobs.client.as_ref());
        if let Some(own) = own
            && client.origin == Origin::PreRegistered
            && *own.id == client.id
        {
            let secret = own.secret.as_ref();
            let text = secret.and_then(|secret| std::str::from_utf8(secret.expose()).ok());
            client.secret = text.map(|text| text.to_owned().into());
        }
        client
    }

    /// Ends the lease of a row that stays as it is.
    async fn release(&self, claim: &Claim) -> Result<(), RecordsError> {
        let save = Save {
            record: claim.row.record,
            fence: claim.fence,
            row: claim.row.clone(),
            unknown: claim.earlier == Earlier::Unknown,
        };
        self.inner.records.save(&save).await?;
        self.inner.cache.forget(&self.key);
        Ok(())
    }
}
