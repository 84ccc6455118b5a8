//! What all clones of [`super::Connections`] share.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::{runtime::Handle, sync::mpsc, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use super::{
    GrantKey, Key, Needs, Records, Terms,
    credential::secrets::{Held, of_file::Files},
    kept::{cache::Cache, known::Known},
    refresh::{self, flights::Flights, lease::Patience, spool::Spool},
};
use crate::{
    audit::{Journal, Kind, OutcomeKind, Phase, Record},
    clock::Clock,
    egress::Egress,
    id,
    policy::Permit,
    refusal::Code,
    subject::{Owner, Scopes, Subject},
    telemetry::Metrics,
    vault::Vault,
};

/// How long what runs is waited for.
const DRAIN: Duration = Duration::from_secs(15);

/// The parts of a process's connections.
pub(super) struct Inner {
    pub(super) records: Arc<dyn Records>,
    pub(super) vault: Vault,
    pub(super) egress: Egress,
    pub(super) runtime: Handle,
    pub(super) journal: Journal,
    pub(super) metrics: Arc<Metrics>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) terms: Arc<ArcSwap<Terms>>,
    /// This process, as leases name it.
    pub(super) holder: Uuid,
    pub(super) cache: Cache<GrantKey, Known>,
    /// Static secrets, sealed.
    pub(super) secrets: Cache<Key, Held>,
    /// How servers took the secrets that lie beside the policy.
    pub(super) files: Files,
    pub(super) flights: Flights,
    pub(super) patience: Patience,
    pub(super) spool: Spool,
    /// Told of each connection that was made.
    pub(super) made: mpsc::Sender<Permit>,
    /// What runs to its end without anybody who waits.
    pub(super) tasks: TaskTracker,
    /// Nothing new is begun.
    pub(super) closing: CancellationToken,
}

impl Inner {
    /// The parts, of which the spool has been read: what an earlier process left in it is saved first.
    pub(super) fn begin(needs: Needs) -> Arc<Self> {
        let inner = Arc::new(Self::new(needs));
        inner.spool.take_up(&inner);
        for held in inner.spool.everything() {
            let saving = refresh::save_later(inner.clone(), None, held);
            inner.tasks.spawn_on(saving, &inner.runtime);
        }
        inner
    }

    /// Begins nothing new, and waits for what runs.
    pub(super) async fn drain(&self) {
        self.closing.cancel();
        self.tasks.close();
        if timeout(DRAIN, self.tasks.wait()).await.is_err() {
            tracing::warn!("token requests were still under way when the time for them was over");
        }
    }

    fn new(needs: Needs) -> Self {
        Self {
            holder: id::ordered(needs.clock.now()),
            cache: Cache::new(),
            secrets: Cache::new(),
            files: Files::new(),
            flights: Flights::default(),
            patience: Patience::new(),
            spool: Spool::new(needs.spool),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            records: needs.records,
            vault: needs.vault,
            egress: needs.egress,
            runtime: needs.runtime,
            journal: needs.journal,
            metrics: needs.metrics,
            clock: needs.clock,
            terms: needs.terms,
            made: needs.made,
        }
    }

    /// Unix seconds.
    pub(super) fn now(&self) -> i64 {
        self.clock.unix()
    }

    /// Nothing of a connection that is gone, or another now, is believed any more.
    pub(super) fn forget(&self, key: &GrantKey) {
        self.cache.forget(key);
        self.secrets.forget(&Key::Secret(key.clone()));
        self.spool.distrust(key);
    }

    /// Takes down what became of an owner's connection or secret. That it could not be kept stops nothing: what happened
    /// at the provider has happened.
    pub(super) fn note(
        &self,
        kind: Kind,
        method: &'static str,
        key: &GrantKey,
        ended: (OutcomeKind, Option<Code>),
    ) {
        let mut record = Record::new(self.clock.now(), kind, Phase::Decision)
            .by(Arc::new(subject(&key.owner)))
            .ended(ended.0, ended.1);
        record.server = Some(key.server.clone());
        record.method = Some(method.into());
        if let Err(error) = self.journal.queue(record) {
            tracing::warn!(%error, server = %key.server, method, "what became of a connection is not on record");
        }
    }
}

/// The key of the permit's connection.
pub(super) fn key(permit: &Permit) -> GrantKey {
    GrantKey {
        owner: permit.owner().clone(),
        server: permit.server().name.clone(),
    }
}

/// Tollgate itself, for this owner.
pub(super) fn subject(owner: &Owner) -> Subject {
    Subject {
        tenant: owner.tenant.clone(),
        agent: "tollgate".into(),
        user: owner.user.clone(),
        groups: Arc::from([]),
        scopes: Scopes::default(),
        conversation: None,
        turn: None,
        acting: None,
        evidence: "tollgate".into(),
    }
}
