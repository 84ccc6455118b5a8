//! Records and counts of the pages. None holds a query, a form's field or a cookie. What strangers can cause is kept in a
//! bounded number of records; each of it is counted.

use std::sync::Arc;

use http::{Method, StatusCode};

use crate::{
    audit::{Journal, Kind, OutcomeKind, Phase, Record, Tally},
    clock::Clock,
    identity::Browser,
    refusal::{Code, Refusal},
    telemetry::Metrics,
};

/// Keeps a record of each sign-in, its end, and each refusal.
pub(super) struct Recorder {
    journal: Journal,
    strangers: Tally,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
}

impl Recorder {
    pub(super) fn new(journal: Journal, clock: Arc<dyn Clock>, metrics: Arc<Metrics>) -> Self {
        Self {
            strangers: Tally::new(journal.clone(), clock.clone()),
            journal,
            clock,
            metrics,
        }
    }

    /// Counts an answer.
    pub(super) fn answered(&self, status: StatusCode) {
        self.metrics.web_request(status.as_u16());
    }

    /// A person did this: `sign_in`, `sign_out`, `sign_in.revoked`.
    pub(super) fn did(&self, browser: &Browser, what: &'static str) {
        let mut record = Record::new(self.clock.now(), Kind::Admin, Phase::Decision)
            .by(browser.subject().clone())
            .ended(OutcomeKind::Allowed, None);
        record.method = Some(what.into());
        self.keep(record);
    }

    /// What a person wanted of a server cannot be done now.
    pub(super) fn failed(&self, browser: &Browser, server: &Arc<str>, code: Code) {
        let mut record = self.no(code).by(browser.subject().clone());
        record.outcome = Some(OutcomeKind::Failed);
        record.server = Some(server.clone());
        self.keep(record);
    }

    /// Takes a refused request down.
    pub(super) fn refused(&self, refusal: &Refusal, method: &Method) {
        tracing::debug!(
            code = refusal.code.as_str(),
            detail = refusal.detail.as_deref(),
            "refused"
        );
        let mut record = self.no(refusal.code);
        record.method = Some(method.to_string().into());
        self.bound(refusal.code, record);
    }

    /// Takes down what went wrong on a connection outside any request.
    pub(super) fn fault(&self, code: Code, detail: &str) {
        tracing::debug!(code = code.as_str(), detail, "connection refused or ended");
        self.bound(code, self.no(code));
    }

    /// Records what was only counted until now.
    pub(super) fn settle(&self) {
        if let Err(error) = self.strangers.settle() {
            tracing::error!(%error, "how often pages refused something has no record");
        }
    }

    fn no(&self, code: Code) -> Record {
        self.metrics.web_refused(code.as_str());
        Record::new(self.clock.now(), Kind::Request, Phase::Decision)
            .ended(OutcomeKind::Refused, Some(code))
    }

    fn bound(&self, code: Code, record: Record) {
        if let Err(error) = self.strangers.queue(code, record) {
            tracing::error!(%error, code = code.as_str(), "what a page refused has no record");
        }
    }

    fn keep(&self, record: Record) {
        let code = record.code.map_or("", Code::as_str);
        if let Err(error) = self.journal.queue(record) {
            tracing::error!(%error, code, "what a page did has no record");
        }
    }
}
