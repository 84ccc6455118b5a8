//! The records of one request: its verdict, and what came of it.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::SystemTime,
};

use http::Method;
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    Forwarded, Head, Shared,
    answer::Refused,
    open::Tunnel,
    relay::{ClosedBy, End},
};
use crate::{
    address::JudgedAddr,
    audit::{Kind, OutcomeKind, Phase, Record, RecordTarget, RecordTunnel, Unavailable},
    egress::Destination,
    id,
    policy::ProxyPermit,
    refusal::{Code, Fault, Refusal},
    subject::Subject,
};

/// Takes down what is refused before it is known what is asked for.
pub(super) fn malformed(shared: &Shared, refusal: &Refusal) {
    let record = Record::new(shared.clock.now(), Kind::Egress, Phase::Decision);
    keep_refusal(shared, record, refusal);
}

/// One request. One that was let through and is dropped leaves its outcome as it goes.
pub(super) struct Entry {
    shared: Arc<Shared>,
    record: Record,
    began: (Uuid, SystemTime),
    started: Instant,
    tunnel: Option<Arc<Tunnel>>,
    allowed: bool,
}

impl Entry {
    pub(super) fn begin(shared: &Arc<Shared>, head: &Head, generation: u64) -> Self {
        let now = shared.clock.now();
        let request_id = id::ordered(now);
        let mut record = Record::new(now, Kind::Egress, Phase::Decision);
        record.method = Some(written(&head.method));
        record.request_id = Some(request_id);
        record.generation = Some(generation);
        record.target = Some(RecordTarget {
            host: head.target.host().to_text(),
            port: head.target.port(),
            addresses: Vec::new(),
            pinned: None,
        });
        Self {
            shared: shared.clone(),
            record,
            began: (request_id, now),
            started: Instant::now(),
            tunnel: None,
            allowed: false,
        }
    }

    /// Its id, and when it came.
    pub(super) fn began(&self) -> (Uuid, SystemTime) {
        self.began
    }

    pub(super) fn started(&self) -> Instant {
        self.started
    }

    pub(super) fn by(&mut self, subject: &Arc<Subject>) {
        self.record.subject = Some(subject.clone());
    }

    /// Takes the verdict down that lets it through; without its record it is none.
    pub(super) fn allow(&mut self, permit: &ProxyPermit) -> Result<(), Unavailable> {
        self.record.rules = vec![permit.rule().into()];
        self.record.outcome = Some(OutcomeKind::Allowed);
        if let Some(denied) = permit.would_refuse() {
            self.record.rules.push(denied.rule.clone());
            self.record.outcome = Some(OutcomeKind::WouldRefuse);
            self.record.code = Some(denied.refusal.code);
        }
        let _kept = self.shared.journal.queue(&self.record)?;
        self.allowed = true;
        self.record.code = None;
        Ok(())
    }

    /// The first rule that decided.
    pub(super) fn rule(&self) -> Arc<str> {
        self.record.rules.first().cloned().unwrap_or_default()
    }

    /// Takes down that it is refused, before or after it was let through.
    pub(super) fn refuse(&mut self, refused: &Refused) {
        if self.allowed {
            let end = outcome(refused.refusal.code.fault());
            self.close(end, Some(refused.refusal.code));
            return log(&refused.refusal, self.began.0);
        }
        self.record.rules = refused.rule.iter().cloned().collect();
        self.record.took = Some(self.started.elapsed());
        keep_refusal(&self.shared, self.record.clone(), &refused.refusal);
    }

    /// Notes where it went.
    pub(super) fn went_to(&mut self, destination: &Destination) {
        if let Some(target) = &mut self.record.target {
            target.addresses.clone_from(&destination.addresses);
            target.pinned = Some(destination.pinned);
        }
    }

    /// Notes where it was connected to: of the addresses that were judged, only that one is told.
    pub(super) fn connected(&mut self, destination: &Destination, address: JudgedAddr) {
        self.went_to(destination);
        let address = address.socket().ip();
        if let Some(target) = &mut self.record.target
            && target.addresses.contains(&address)
        {
            target.addresses = vec![address];
        }
    }

    /// Notes the tunnel that was opened for it.
    pub(super) fn opened(&mut self, tunnel: &Arc<Tunnel>) {
        self.tunnel = Some(tunnel.clone());
    }

    /// Takes the end of a plain request down: bytes of its body, and of its answer.
    pub(super) fn answered(&mut self, forwarded: &Forwarded) {
        self.record.args_bytes = usize::try_from(forwarded.sent).ok();
        self.record.result_bytes = usize::try_from(forwarded.received).ok();
        if let (Some(destination), Some(address)) = (&forwarded.destination, forwarded.address) {
            self.connected(destination, address);
        }
        match &forwarded.error {
            None => self.close(OutcomeKind::Allowed, None),
            Some(error) => self.refuse(&Refusal::from(error).into()),
        }
    }

    /// Takes down that a plain request was cut off.
    pub(super) fn cut(&mut self, end: &End) {
        match &end.refused {
            Some(refused) => self.refuse(refused),
            None => self.close(OutcomeKind::Failed, Some(Code::Draining)),
        }
    }

    /// Takes the end of its tunnel down.
    pub(super) fn ended(&mut self, end: &End) {
        let Some(tunnel) = self.tunnel.take() else {
            return;
        };
        let (bytes_in, bytes_out) = (
            tunnel.bytes_in.load(Relaxed),
            tunnel.bytes_out.load(Relaxed),
        );
        let closed_by = end.by.as_str();
        self.record.tunnel = Some(RecordTunnel {
            bytes_in,
            bytes_out,
            closed_by,
        });
        let metrics = &self.shared.metrics;
        metrics.tunnel_closed(closed_by, bytes_in, bytes_out);
        match &end.refused {
            None => self.close(OutcomeKind::Allowed, None),
            Some(refused) => {
                self.record.rules.extend(refused.rule.clone());
                self.close(OutcomeKind::Refused, Some(refused.refusal.code));
                log(&refused.refusal, self.began.0);
            }
        }
    }

    fn close(&mut self, outcome: OutcomeKind, code: Option<Code>) {
        self.allowed = false;
        let now = self.shared.clock.now();
        let record = &mut self.record;
        (record.id, record.time) = (id::ordered(now), now);
        record.phase = Phase::Outcome;
        (record.outcome, record.code) = (Some(outcome), code);
        record.took = Some(self.started.elapsed());
        if let Some(code) = code {
            self.shared.metrics.tunnel_refused(code.as_str());
        }
        if let Err(error) = self.shared.journal.queue(&*record) {
            tracing::error!(%error, "the end of a proxied request has no record");
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.tunnel.is_some() {
            // Nothing but the end of the process drops a tunnel that is open.
            self.ended(&End::by(ClosedBy::Drain));
        } else if self.allowed {
            self.close(OutcomeKind::Failed, Some(Code::ClientGone));
        }
    }
}

/// A method as records name it; the usual ones cost nothing.
fn written(method: &Method) -> Cow<'static, str> {
    const USUAL: [&str; 4] = ["GET", "CONNECT", "POST", "HEAD"];
    let usual = USUAL.into_iter().find(|usual| method == *usual);
    usual.map_or_else(|| method.to_string().into(), Cow::Borrowed)
}

/// How a request ended that was let through and then not served.
fn outcome(fault: Fault) -> OutcomeKind {
    match fault {
        Fault::Caller | Fault::Policy => OutcomeKind::Refused,
        Fault::Upstream | Fault::Internal => OutcomeKind::Failed,
    }
}

fn keep_refusal(shared: &Shared, record: Record, refusal: &Refusal) {
    log(refusal, record.request_id.unwrap_or_default());
    shared.metrics.tunnel_refused(refusal.code.as_str());
    let record = record.ended(OutcomeKind::Refused, Some(refusal.code));
    if let Err(error) = shared.journal.queue(record) {
        tracing::error!(%error, code = refusal.code.as_str(), "a refusal has no record");
    }
}

fn log(refusal: &Refusal, request: Uuid) {
    tracing::debug!(
        code = refusal.code.as_str(),
        detail = refusal.detail.as_deref(),
        %request,
        "refused: {}",
        refusal.public
    );
}
