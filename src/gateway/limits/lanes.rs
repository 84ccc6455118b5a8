//! How many calls run at once: of one caller's conversation, and at one server.
//!
//! Whoever may run no more waits in line, within the call's own time, so that no agent is held longer than it would be by
//! a slow server; what finds no room to wait is refused at once. Nothing that waits has been sent or has an intent.

mod lines;

use std::{
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::time::sleep_until;

pub(in crate::gateway) use self::lines::Seat;
use self::lines::{Aside, Bounds, Joined, Key, Lines, Spot, Turn};
use crate::{
    deadline::Deadline,
    gateway::request::asked::Ticket,
    policy::{CallLimits, Permit, Server},
    refusal::{Code, Refusal},
    subject::Subject,
    telemetry::Metrics,
    upstream::{self, Leave, Upstream},
};

/// Calls in all at most; with them lines are bounded, which last as long as their calls.
const IN_ALL: usize = 65_536;
/// So many times its concurrency wait for a server at most.
const WAITING_FOR_SERVER: usize = 4;

/// Every line of calls, shared by all workers.
pub(in crate::gateway) struct Lanes {
    callers: Arc<Lines<Lane>>,
    servers: Arc<Lines<Arc<str>>>,
}

/// The conversation of a caller; all calls of an agent key that name none, in no session, are one.
#[derive(Clone, Debug)]
pub(in crate::gateway) struct Lane(Arc<Subject>);

impl Lane {
    fn name(&self) -> Result<&str, &str> {
        let Subject {
            conversation,
            evidence,
            ..
        } = &*self.0;
        conversation.as_deref().ok_or(evidence)
    }
}

impl PartialEq for Lane {
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (&self.0, &other.0);
        self.name() == other.name()
            && one.user == two.user
            && one.agent == two.agent
            && one.tenant == two.tenant
    }
}

impl Eq for Lane {}

/// Equality looks at everything; of what tells lanes apart, only the words that differ much are worth hashing.
impl Hash for Lane {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
        self.0.user.hash(state);
    }
}

/// Why a call that waited got no seat.
enum Missed {
    Stopped,
    Late,
    Draining,
}

impl Lanes {
    /// No call yet.
    pub(in crate::gateway) fn new(metrics: &Metrics) -> Self {
        let callers = Lines::new(metrics.calls_running.clone(), metrics.calls_waiting.clone());
        let servers = Lines::new(
            metrics.server_running.clone(),
            metrics.server_waiting.clone(),
        );
        Self {
            callers: Arc::new(callers),
            servers: Arc::new(servers),
        }
    }

    /// A seat in the conversation of `subject`.
    pub(in crate::gateway) async fn of_caller(
        &self,
        subject: &Arc<Subject>,
        limits: CallLimits,
        ticket: &Ticket,
        deadline: Deadline,
    ) -> Result<Seat<Lane>, Refusal> {
        let bounds = Bounds {
            running: limits.running,
            waiting: limits.waiting,
        };
        if self.callers.seated() >= IN_ALL {
            let public = format!("refused: {IN_ALL} calls run already");
            return Err(Refusal::new(Code::CallsLimit, public));
        }
        let whose = "calls of this conversation";
        let joined = self.callers.join(&Lane(subject.clone()), subject, bounds);
        let seated = seat(joined, ticket, deadline).await;
        seated.map_err(|missed| refusal(missed, Code::CallsLimit, bounds, whose))
    }

    /// A seat at the server of `permit`, for a request of `subject`, and leave to ask that server. Nobody waits for one
    /// that is out of reach, and it may turn out so meanwhile.
    pub(in crate::gateway) async fn at_server(
        &self,
        upstream: &Upstream,
        permit: &Permit,
        subject: &Arc<Subject>,
        ticket: &Ticket,
        deadline: Deadline,
    ) -> Result<(Seat<Arc<str>>, Leave), Refusal> {
        drop(upstream.admit(permit)?);
        let seat = self
            .seat_at(permit.server(), subject, ticket, deadline)
            .await?;
        Ok((seat, upstream.admit(permit)?))
    }

    async fn seat_at(
        &self,
        server: &Server,
        subject: &Arc<Subject>,
        ticket: &Ticket,
        deadline: Deadline,
    ) -> Result<Seat<Arc<str>>, Refusal> {
        let bounds = Bounds {
            running: server.limits.concurrency,
            waiting: server.limits.concurrency * WAITING_FOR_SERVER,
        };
        let joined = self.servers.join(&server.name, subject, bounds);
        let seated = seat(joined, ticket, deadline).await;
        seated.map_err(|missed| {
            let whose = format!("requests to server `{}`", server.name);
            refusal(missed, Code::ServerBusy, bounds, &whose)
        })
    }

    /// Sends everyone away who waits: nothing of them was sent, and the process is about to end.
    pub(in crate::gateway) fn drain(&self) {
        self.callers.drain();
        self.servers.drain();
    }
}

async fn seat<K: Key>(
    joined: Joined<K>,
    ticket: &Ticket,
    deadline: Deadline,
) -> Result<Seat<K>, Option<Missed>> {
    match joined {
        Joined::Seated(seat) => Ok(seat),
        Joined::Full => Err(None),
        // Rarer, and its state large: boxed, it does not weigh on every call.
        Joined::Queued(turn) => Box::pin(wait(turn, ticket, deadline)).await.map_err(Some),
    }
}

async fn wait<K: Key>(
    mut turn: Turn<K>,
    ticket: &Ticket,
    deadline: Deadline,
) -> Result<Seat<K>, Missed> {
    tokio::select! {
        biased;
        () = ticket.stopped() => Err(Missed::Stopped),
        seat = turn.come() => seat.ok_or(Missed::Draining),
        () = sleep_until(deadline.instant()) => Err(Missed::Late),
    }
}

fn refusal(missed: Option<Missed>, code: Code, bounds: Bounds, whose: &str) -> Refusal {
    let Bounds { running, waiting } = bounds;
    let public = match missed {
        None => format!("refused: {running} {whose} run and {waiting} wait, which is all that may"),
        Some(Missed::Late) => {
            format!("refused: its time was over before one of {running} {whose} that ran had ended")
        }
        Some(Missed::Draining) => {
            "refused: this process is shutting down, and the call had not begun".to_owned()
        }
        Some(Missed::Stopped) => return upstream::Error::Stopped.into(),
    };
    Refusal::new(code, public)
}

/// The seats of one call, given up when dropped.
#[derive(Default)]
pub(in crate::gateway) struct Held {
    pub(in crate::gateway) lane: Option<Seat<Lane>>,
    pub(in crate::gateway) server: Option<Seat<Arc<str>>>,
}

impl Held {
    /// What lets the call wait for its person without holding up others.
    pub(in crate::gateway) fn pause(&self) -> Pause {
        Pause {
            lane: self.lane.as_ref().map(Seat::spot),
            server: self.server.as_ref().map(Seat::spot),
            begun: Mutex::default(),
        }
    }
}

/// Lets a call leave its seats to others while questions of its server are open.
pub(in crate::gateway) struct Pause {
    lane: Option<Spot<Lane>>,
    server: Option<Spot<Arc<str>>>,
    begun: Mutex<Weak<Paused>>,
}

impl Pause {
    /// Begins it, or goes on with it; it ends when all that was returned is dropped.
    pub(in crate::gateway) fn begin(&self) -> Arc<Paused> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(paused) = begun.upgrade() {
            return paused;
        }
        let paused = Arc::new(Paused {
            _lane: self.lane.as_ref().map(Spot::step_aside),
            _server: self.server.as_ref().map(Spot::step_aside),
        });
        *begun = Arc::downgrade(&paused);
        paused
    }
}

/// A call that waits for its person.
pub(in crate::gateway) struct Paused {
    _lane: Option<Aside<Lane>>,
    _server: Option<Aside<Arc<str>>>,
}
