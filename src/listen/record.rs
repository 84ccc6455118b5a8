//! The record and the count of what the door refuses.

use std::{
    borrow::Cow,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::StatusCode;
use uuid::Uuid;

use crate::{
    audit::{Journal, Kind, OutcomeKind, Phase, Record},
    clock::Clock,
    refusal::{Code, Refusal},
    subject::Subject,
    telemetry::Metrics,
};

/// What was known of a request when it was refused.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) request_id: Option<Uuid>,
    pub(super) subject: Option<Arc<Subject>>,
    pub(super) server: Option<Arc<str>>,
    pub(super) method: Option<Cow<'static, str>>,
    pub(super) generation: Option<u64>,
    pub(super) took: Option<Duration>,
}

/// Keeps one record for each refusal of a listener.
#[derive(Clone)]
pub struct Recorder {
    journal: Journal,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Recorder").finish_non_exhaustive()
    }
}

impl Recorder {
    /// Records go to `journal`, counts to `metrics`.
    pub fn new(journal: Journal, clock: Arc<dyn Clock>, metrics: Arc<Metrics>) -> Self {
        Self {
            journal,
            clock,
            metrics,
        }
    }

    /// The wall time.
    pub(super) fn now(&self) -> SystemTime {
        self.clock.now()
    }

    /// Counts an answer.
    pub(super) fn answered(&self, status: StatusCode) {
        self.metrics.request(status.as_u16());
    }

    /// Takes a refused request down.
    pub(super) fn refused(&self, refusal: &Refusal, known: Known) {
        tracing::debug!(
            code = refusal.code.as_str(),
            detail = refusal.detail.as_deref(),
            request = known.request_id.map(tracing::field::display),
            "refused: {}",
            refusal.public
        );
        self.keep(refusal.code, known);
    }

    /// Takes down what went wrong on a connection outside any request.
    pub(super) fn fault(&self, code: Code, detail: &str) {
        tracing::debug!(code = code.as_str(), detail, "connection refused or ended");
        self.keep(code, Known::default());
    }

    fn keep(&self, code: Code, known: Known) {
        self.metrics.listen_refused(code.as_str());
        let mut record = Record::new(self.clock.now(), Kind::Request, Phase::Decision)
            .ended(OutcomeKind::Refused, Some(code));
        record.subject = known.subject;
        record.server = known.server;
        record.method = known.method;
        record.generation = known.generation;
        record.took = known.took;
        record.request_id = known.request_id;
        if let Err(error) = self.journal.queue(record) {
            tracing::error!(%error, code = code.as_str(), "a refusal has no record");
        }
    }
}
