//! The record and the count of what the door refuses.

use std::{fmt, sync::Arc};

use uuid::Uuid;

use super::metrics::Listener;
use crate::{
    audit::{Journal, Kind, OutcomeKind, Phase, Record},
    clock::Clock,
    id,
    refusal::{Code, Refusal},
    subject::Subject,
};

/// What was known of a request when it was refused.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) request_id: Option<Uuid>,
    pub(super) subject: Option<Arc<Subject>>,
    pub(super) server: Option<Arc<str>>,
    pub(super) method: Option<Arc<str>>,
    pub(super) generation: Option<u64>,
    pub(super) ms_total: Option<f64>,
}

/// Keeps one record for each refusal of a listener.
#[derive(Clone)]
pub struct Recorder {
    journal: Journal,
    clock: Arc<dyn Clock>,
    metrics: Listener,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Recorder").finish_non_exhaustive()
    }
}

impl Recorder {
    /// Records go to `journal`, counts to `metrics`.
    pub fn new(journal: Journal, clock: Arc<dyn Clock>, metrics: Listener) -> Self {
        Self {
            journal,
            clock,
            metrics,
        }
    }

    pub(super) fn request_id(&self) -> Uuid {
        self.metrics.request();
        id::ordered(self.clock.now())
    }

    /// Takes a refused request down.
    pub(super) fn refused(&self, refusal: &Refusal, known: Known) {
        tracing::info!(
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
        tracing::info!(code = code.as_str(), detail, "connection refused or ended");
        self.keep(code, Known::default());
    }

    fn keep(&self, code: Code, known: Known) {
        self.metrics.refused(code);
        let time = self.clock.now();
        let record = Record {
            id: id::ordered(time),
            time,
            kind: Kind::Request,
            phase: Phase::Decision,
            outcome: Some(OutcomeKind::Refused),
            code: Some(code),
            subject: known.subject,
            server: known.server,
            method: known.method,
            tool: None,
            generation: known.generation,
            rules: Vec::new(),
            target: None,
            args_bytes: None,
            args_keys: Vec::new(),
            result_bytes: None,
            result_is_error: None,
            ms_total: known.ms_total,
            ms_upstream: None,
            request_id: known.request_id,
        };
        if let Err(error) = self.journal.queue(record) {
            tracing::error!(%error, code = code.as_str(), "a refusal has no record");
        }
    }
}
