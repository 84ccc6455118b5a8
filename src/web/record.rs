//! Records and counts of the pages. None holds a query, a form's field or a cookie.

use std::sync::Arc;

use http::{Method, StatusCode};

use crate::{
    audit::{Journal, Kind, OutcomeKind, Phase, Record},
    clock::Clock,
    identity::Browser,
    refusal::{Code, Refusal},
    telemetry::Metrics,
};

/// Keeps a record of each sign-in, its end, and each refusal.
pub(super) struct Recorder {
    journal: Journal,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
}

impl Recorder {
    pub(super) fn new(journal: Journal, clock: Arc<dyn Clock>, metrics: Arc<Metrics>) -> Self {
        Self {
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
        self.keep(record);
    }

    /// Takes down what went wrong on a connection outside any request.
    pub(super) fn fault(&self, code: Code, detail: &str) {
        tracing::debug!(code = code.as_str(), detail, "connection refused or ended");
        self.keep(self.no(code));
    }

    fn no(&self, code: Code) -> Record {
        self.metrics.web_refused(code.as_str());
        Record::new(self.clock.now(), Kind::Request, Phase::Decision)
            .ended(OutcomeKind::Refused, Some(code))
    }

    fn keep(&self, record: Record) {
        let code = record.code.map_or("", Code::as_str);
        if let Err(error) = self.journal.queue(record) {
            tracing::error!(%error, code, "what a page did has no record");
        }
    }
}
