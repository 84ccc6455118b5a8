//! The record of one request: opened with it, filled on the way, closed exactly once.

use std::sync::Arc;

use tokio::time::Instant;

use super::asked::Ticket;
use crate::{
    approval::Consent,
    audit::{Intent, Kind, OutcomeKind, Phase, Record, RecordTarget, Recorded},
    egress::{Destination, Effect},
    gateway::{Finding, Gateway, Shared, limits::lanes::Held, reply::Proof},
    id,
    mcp::Question,
    policy::Permit,
    refusal::{Code, Fault, Refusal},
    subject::Subject,
    upstream::{Answer, Answered, Error, Message},
};

/// What ends a request that was let through, though the server is not at fault.
const UNFINISHED: [Code; 2] = [Code::Cancelled, Code::AnswersOverloaded];
/// What refuses a request, though it is the server that has to change.
const HELD_BACK: [Code; 2] = [Code::ServerBusy, Code::ServerFailing];

/// A request's record while the request lasts. Dropped unclosed, it says that the caller went away.
pub(in crate::gateway) struct Entry {
    shared: Arc<Shared>,
    record: Record,
    started: Instant,
    sent: Option<Instant>,
    intended: bool,
    listens: bool,
    open: bool,
    /// The seats of a call, which it has until its record is closed.
    pub(in crate::gateway) held: Held,
}

/// How a request ended.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Ending {
    code: Option<Code>,
    refused: bool,
    bytes: Option<usize>,
    is_error: Option<bool>,
}

impl Ending {
    /// It was answered by Tollgate itself.
    pub(in crate::gateway) fn answered() -> Self {
        Self::default()
    }

    /// It was answered by a result of Tollgate's own.
    pub(in crate::gateway) fn ours(bytes: usize) -> Self {
        Self {
            bytes: Some(bytes),
            is_error: Some(false),
            ..Self::default()
        }
    }

    /// The server answered it.
    pub(in crate::gateway) fn with(message: &Message) -> Self {
        Self {
            bytes: Some(message.size()),
            is_error: Some(message.is_error()),
            ..Self::default()
        }
    }

    /// It was refused, or failed.
    pub(in crate::gateway) fn without(refusal: &Refusal) -> Self {
        let code = refusal.code;
        let ours = code.fault() != Fault::Upstream && !UNFINISHED.contains(&code);
        Self {
            code: Some(code),
            refused: ours || HELD_BACK.contains(&code),
            ..Self::default()
        }
    }

    /// The client stopped it.
    pub(in crate::gateway) fn stopped() -> Self {
        Self {
            code: Some(Code::Cancelled),
            ..Self::default()
        }
    }

    fn outcome(&self) -> OutcomeKind {
        match self.code {
            None => OutcomeKind::Allowed,
            Some(_) if self.refused => OutcomeKind::Refused,
            Some(_) => OutcomeKind::Failed,
        }
    }
}

impl Entry {
    /// Opens the record of the request that `template` describes. It goes from hand to hand: boxed, it is not copied each
    /// time.
    pub(in crate::gateway) fn open(
        gateway: &Gateway,
        template: Record,
        started: Instant,
    ) -> Box<Self> {
        Box::new(Self {
            shared: gateway.shared.clone(),
            record: template,
            started,
            sent: None,
            intended: false,
            listens: false,
            open: true,
            held: Held::default(),
        })
    }

    /// What is known so far.
    pub(in crate::gateway) fn record(&mut self) -> &mut Record {
        &mut self.record
    }

    /// Who asks, in the conversation and turn that were named.
    pub(in crate::gateway) fn subject(&self) -> &Arc<Subject> {
        self.record
            .subject
            .as_ref()
            .expect("the record of a request is opened with its caller")
    }

    /// From here on it is a listening stream, which its client ends in order by going away.
    pub(in crate::gateway) fn listens(&mut self) {
        self.listens = true;
    }

    /// Says what kind of request it turned out to be.
    pub(in crate::gateway) fn is(&mut self, kind: Kind, method: &'static str) {
        self.record.kind = kind;
        self.record.method = Some(method.into());
    }

    /// Says which of the server's questions it answers.
    pub(in crate::gateway) fn answers(&mut self, question: Question) {
        self.record.method = Some(question.as_str().into());
    }

    /// A read goes on only while records are kept, unless the operator said otherwise.
    pub(in crate::gateway) fn admit_read(&mut self) -> Result<(), Refusal> {
        self.sent = Some(Instant::now());
        Ok(self.shared.journal.admit_read()?)
    }

    /// What a call that has consent may do: an effect only once its intent is on disk.
    pub(in crate::gateway) async fn effect(&mut self, consent: Consent) -> Result<Effect, Refusal> {
        if consent.is_effect() {
            return Ok(Effect::Write(self.intend().await?));
        }
        self.admit_read()?;
        Ok(Effect::Read)
    }

    /// On disk when this returns.
    async fn intend(&mut self) -> Result<Recorded<Intent>, Refusal> {
        let next = id::ordered(self.shared.clock.now());
        let intent = std::mem::replace(&mut self.record.id, next);
        let intent = Record {
            id: intent,
            ..self.record.clone()
        };
        let recorded = self.shared.journal.intent(intent).await?;
        self.intended = true;
        self.sent = Some(Instant::now());
        Ok(recorded)
    }

    /// Notes what came of a forwarded call.
    pub(in crate::gateway) fn forwarded(
        &mut self,
        gateway: &Gateway,
        permit: &Permit,
        ticket: Ticket,
        answered: Result<Answered, Error>,
    ) -> Result<Finding, Refusal> {
        let Answered {
            answer,
            destination,
        } = answered.map_err(|error| self.failed(gateway, permit, &ticket, error))?;
        self.went_to(destination);
        match answer {
            Ok(Answer::Whole(message)) => Ok(message.into()),
            Ok(Answer::Stream(messages)) => Ok(Finding::Stream(messages, ticket)),
            Err(error) => Err(self.failed(gateway, permit, &ticket, error)),
        }
    }

    /// Notes that a forwarded request failed. One that was given up is cancelled at the server too.
    pub(in crate::gateway) fn failed(
        &mut self,
        gateway: &Gateway,
        permit: &Permit,
        ticket: &Ticket,
        mut error: Error,
    ) -> Refusal {
        if let Error::Egress { destination, .. } = &mut error
            && let Some(destination) = destination.take()
        {
            self.went_to(*destination);
        }
        let refusal = error.refusal();
        ticket.abandon_after(gateway, permit, refusal.code);
        refusal
    }

    /// Notes where the request went.
    pub(in crate::gateway) fn went_to(&mut self, destination: Destination) {
        self.record.target = Some(target(destination));
    }

    /// Closes the record: on disk before this returns if there was a side effect, else queued.
    pub(in crate::gateway) async fn close(&mut self, ending: Ending) -> Result<Proof, Refusal> {
        if !self.intended {
            return self.close_queued(ending);
        }
        self.finish(ending);
        let journal = &self.shared.journal;
        let kept = journal.outcome(self.record.clone()).await;
        self.held = Held::default();
        kept.map(Proof::Durable).map_err(|_| {
            Refusal::new(
                Code::RecordUnavailable,
                "the call was made and may have taken effect, but its outcome could not be recorded",
            )
        })
    }

    /// Closes the record of what had no side effect.
    pub(in crate::gateway) fn close_queued(&mut self, ending: Ending) -> Result<Proof, Refusal> {
        let refused = ending.refused;
        self.finish(ending);
        let journal = &self.shared.journal;
        let kept = if refused {
            journal.queue(&self.record)
        } else {
            journal.read(&self.record)
        };
        self.held = Held::default();
        Ok(Proof::Queued(kept?))
    }

    fn finish(&mut self, ending: Ending) {
        self.open = false;
        let now = Instant::now();
        let took = now - self.started;
        let record = &mut self.record;
        record.time = self.shared.clock.now();
        record.phase = if ending.refused && !self.intended {
            Phase::Decision
        } else {
            Phase::Outcome
        };
        record.outcome = Some(ending.outcome());
        record.code = ending.code;
        record.result_bytes = ending.bytes;
        record.result_is_error = ending.is_error;
        record.took = Some(took);
        record.took_upstream = self
            .sent
            .filter(|_| record.target.is_some())
            .map(|sent| now - sent);
        self.shared.metrics.call(
            ending.outcome().as_str(),
            ending.code.map(Code::as_str),
            took,
        );
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.open {
            let gone = Refusal::new(Code::ClientGone, "the caller went away");
            let ending = if self.listens {
                Ending::answered()
            } else {
                Ending {
                    refused: false,
                    ..Ending::without(&gone)
                }
            };
            // Nobody is left to be told that the record could not be kept; the journal's own gauge tells the operator.
            let _ = self.close_queued(ending);
        }
    }
}

/// Where a request went, as its record says it.
pub(in crate::gateway) fn target(destination: Destination) -> RecordTarget {
    RecordTarget {
        host: destination.host,
        port: destination.port,
        addresses: destination.addresses,
        pinned: Some(destination.pinned),
    }
}
