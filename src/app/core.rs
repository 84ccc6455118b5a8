//! What all threads of a process share, and what changes while it runs.

use std::{
    path::{self, Path},
    process,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;
use nix::unistd::Uid;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    load::Loaded,
    reload::{Outcome, Reloader},
    status::{FailingStatus, ListenerStatus, PolicyStatus, RecordsStatus, Status, caution},
    vault::Guard,
};
use crate::{
    audit::{Journal, Kind, OutcomeKind, Phase, Record},
    clock::Clock,
    config::Offer,
    connect::{self, Connections},
    gateway,
    identity::Identity,
    listen::{Health, Limits, Origins, Terms, Tls},
    refusal::Code,
    store::Store,
    telemetry::Metrics,
    tunnel,
    upstream::{Breakers, Eras, OpenCircuit},
    web::Web,
};

/// The heart of a running process.
pub(super) struct Core {
    pub(super) reloader: Arc<Reloader>,
    pub(super) terms: Arc<ArcSwap<Terms>>,
    pub(super) tls: Option<Tls>,
    pub(super) journal: Journal,
    pub(super) store: Arc<Store>,
    pub(super) guard: Guard,
    pub(super) metrics: Arc<Metrics>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) identity: Identity,
    pub(super) connections: Connections,
    pub(super) connect_terms: Arc<ArcSwap<connect::Terms>>,
    pub(super) gateway: Arc<gateway::Shared>,
    pub(super) tunnels: Arc<tunnel::Shared>,
    pub(super) eras: Arc<Eras>,
    pub(super) breakers: Arc<Breakers>,
    /// Accept nothing new, finish what runs.
    pub(super) drain: CancellationToken,
    /// Do not wait for what runs.
    pub(super) cut: CancellationToken,
    /// The workers have ended; the ops listener may too.
    pub(super) stop: CancellationToken,
    pub(super) workers: usize,
    pub(super) listeners: Vec<ListenerStatus>,
    pub(super) started: Instant,
    /// What the last reload left open.
    pub(super) pending: Mutex<Pending>,
    /// The pages, where they are served.
    pub(super) web: Option<Web>,
    /// Where the pages are where `public_url` does not say so.
    pub(super) pages: Arc<str>,
}

/// What a reload could not take up.
#[derive(Clone, Default)]
pub(super) struct Pending {
    pub(super) rejected: Vec<String>,
    pub(super) restart: Vec<String>,
}

/// The terms of the door under what was loaded.
pub(super) fn terms(loaded: &Loaded) -> Terms {
    let settings = &loaded.settings;
    let listen = &settings.listen;
    Terms {
        policy: loaded.policy.clone(),
        origins: Origins::new(
            settings.public_url.as_deref(),
            listen.allowed_origins.clone(),
            listen.tls.is_some() || listen.behind_tls,
        ),
        request_bytes: settings.limits.request_bytes,
        body: Limits::BODY,
    }
}

impl Core {
    /// Passes on what a reload found; runs while the reloader holds its lock, so the last one wins.
    pub(super) fn took_up(&self, outcome: &Outcome, loaded: &Loaded) {
        let texts = |kept: &[&str]| kept.iter().map(|key| (*key).to_owned()).collect();
        let pending = match outcome {
            Outcome::Changed { generation, kept } => {
                self.apply(loaded);
                self.metrics.policy_loaded(*generation);
                tracing::info!(generation, "policy loaded");
                Pending {
                    restart: texts(kept),
                    ..Pending::default()
                }
            }
            Outcome::Unchanged { kept } => {
                self.metrics.policy_loaded(loaded.policy.generation);
                Pending {
                    restart: texts(kept),
                    ..Pending::default()
                }
            }
            Outcome::Rejected { faults } => {
                self.metrics.policy_refused();
                for fault in faults {
                    tracing::error!(code = Code::PolicyRejected.as_str(), %fault, "policy not taken");
                }
                Pending {
                    rejected: faults.iter().map(ToString::to_string).collect(),
                    restart: self.pending().restart,
                }
            }
        };
        for setting in &pending.restart {
            tracing::warn!(setting, "a changed setting waits for a restart");
        }
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = pending;
        self.record_policy(outcome, loaded.policy.generation);
    }

    fn apply(&self, loaded: &Loaded) {
        self.terms.store(Arc::new(terms(loaded)));
        let terms = super::connect::terms(&loaded.settings, &self.pages);
        self.connect_terms.store(Arc::new(terms));
        self.gateway.take_up(&loaded.policy);
        let policy = &loaded.policy;
        self.tunnels.take_up(policy);
        self.breakers.take_up(policy);
        self.eras.retain(|name| policy.servers.contains_key(name));
        if let (Some(tls), Some(material)) = (&self.tls, &loaded.tls)
            && let Err(error) = tls.renew(&material.chain, material.key.expose())
        {
            tracing::error!(%error, "the certificate was not taken; the one before stays");
        }
    }

    fn record_policy(&self, outcome: &Outcome, generation: u64) {
        let (ended, code) = match outcome {
            Outcome::Changed { .. } => (OutcomeKind::Allowed, None),
            Outcome::Rejected { .. } => (OutcomeKind::Refused, Some(Code::PolicyRejected)),
            Outcome::Unchanged { .. } => return,
        };
        let mut record =
            Record::new(self.clock.now(), Kind::Policy, Phase::Decision).ended(ended, code);
        record.method = Some("reload".into());
        record.generation = Some(generation);
        self.record(record);
    }

    /// Stops accepting.
    pub(super) fn begin_drain(&self) {
        if !self.drain.is_cancelled() {
            tracing::info!("draining");
            self.record(Record::lifecycle(self.clock.now(), "drain"));
            self.drain.cancel();
            self.gateway.drain();
            self.tunnels.drain();
        }
    }

    /// Ends threads of a start that failed.
    pub(super) fn cut_all(&self) {
        self.drain.cancel();
        self.cut.cancel();
        self.stop.cancel();
    }

    pub(super) fn record(&self, record: Record) {
        // What a proof would allow has happened already; a failure shows in readiness and in its gauge.
        if let Err(error) = self.journal.queue(record) {
            tracing::error!(%error, "an event of the process has no record");
        }
    }

    pub(super) fn pending(&self) -> Pending {
        self.pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn status(&self) -> Status {
        let loaded = self.reloader.current_full();
        let pending = self.pending();
        let records = self.journal.health();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: process::id(),
            uid: Uid::effective().as_raw(),
            uptime_s: self.started.elapsed().as_secs(),
            workers: self.workers,
            draining: self.drain.is_cancelled(),
            obstacle: self.obstacle(),
            listeners: self.listeners.clone(),
            policy: PolicyStatus {
                folder: whole(self.reloader.loader().folder()),
                generation: loaded.policy.generation,
                servers: loaded.policy.servers.len(),
                keys: loaded.policy.keys.len(),
                connected_only: loaded.settings.offer == Offer::Connected,
                rejected: pending.rejected,
                restart: pending.restart,
            },
            identity: loaded.settings.identity.method.to_string(),
            records: RecordsStatus {
                folder: loaded
                    .settings
                    .state_dir
                    .join("audit")
                    .display()
                    .to_string(),
                failure: records.failure.map(|failure| failure.to_string()),
                waiting: records.waiting,
                seq: records.head.seq,
            },
            vault: self.guard.status(),
            waiting: 0,
            secrets: Vec::new(),
            failing: self.breakers.open().into_iter().map(failing).collect(),
            caution: caution(Uid::effective().as_raw()),
        }
    }

    pub(super) fn record_admin(&self, what: &'static str, worked: bool) {
        let ended = if worked {
            OutcomeKind::Allowed
        } else {
            OutcomeKind::Failed
        };
        let mut record =
            Record::new(self.clock.now(), Kind::Admin, Phase::Decision).ended(ended, None);
        record.method = Some(what.into());
        self.record(record);
    }
}

/// A path that means the same from every folder.
fn whole(path: &Path) -> String {
    let whole = path::absolute(path);
    whole.as_deref().unwrap_or(path).display().to_string()
}

fn failing(circuit: OpenCircuit) -> FailingStatus {
    FailingStatus {
        server: circuit.server.to_string(),
        user: circuit.user.map(|user| user.to_string()),
        since_s: circuit.since.as_secs(),
        // Rounded up: 0 says that the time has come.
        retry_s: circuit.retry.as_secs_f64().ceil() as u64,
    }
}

impl Health for Core {
    fn obstacle(&self) -> Option<String> {
        if self.drain.is_cancelled() {
            return Some("draining".to_owned());
        }
        self.journal
            .health()
            .failure
            .map(|failure| failure.to_string())
    }

    fn metrics(&self) -> String {
        self.metrics.render()
    }
}
