//! Sessions of the older protocol: who may use one, what runs in it, when it ends.
//!
//! A session id finds a session, it never admits anyone: the caller proves itself on every request, and a session
//! answers only to the subject, the evidence and the server that it was opened with.

pub(super) mod farewell;
pub(super) mod lifecycle;
pub(super) mod questions;
pub(super) mod tell;

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use dashmap::DashMap;
use futures_util::task::AtomicWaker;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use self::questions::Questions;
use crate::{
    catalog::View,
    gateway::streams::resume::Resumable,
    id,
    mcp::capabilities::Offer,
    policy::{self, Permit, Server, Snapshot},
    refusal::{Code, Refusal},
    subject::Subject,
    upstream,
};

/// Sessions of one key at most, whomever it acts for.
const PER_KEY: usize = 4_096;
/// Sessions in all at most.
const IN_ALL: usize = 65_536;
/// A session without a request for so long is over.
const IDLE: Duration = Duration::from_secs(60 * 60);
/// How often idle sessions are looked for, at most.
const SWEEP: Duration = Duration::from_secs(60);
/// Answers to the server's own requests that are on their way at once at most, for one session.
const ANSWERS: usize = 8;
/// Requests in flight in one session at most.
const IN_FLIGHT: usize = 256;

/// Every open session, shared by all workers.
pub(super) struct Sessions {
    open: DashMap<Arc<str>, Arc<Session>>,
    swept: Mutex<Instant>,
}

/// One session: the client's side, and the upstream's side that it alone uses.
pub(super) struct Session {
    pub(super) id: Arc<str>,
    pub(super) upstream: Arc<upstream::Session>,
    /// What the client offers to the server.
    pub(super) offer: Offer,
    /// From where it looks at the server.
    pub(super) view: View,
    /// What the server asks of the client.
    pub(super) questions: Questions,
    /// What of it can be resumed.
    pub(super) resumable: Resumable,
    subject: Arc<Subject>,
    server: Arc<Server>,
    running: Mutex<HashMap<Bytes, Running>>,
    touched: Mutex<Instant>,
    listening: AtomicBool,
    answers: Arc<Semaphore>,
    ended: CancellationToken,
}

struct Running {
    upstream_id: u64,
    stop: Arc<Stop>,
}

/// The brake of one request, on which one task at a time waits.
#[derive(Default)]
struct Stop {
    pulled: AtomicBool,
    waiting: AtomicWaker,
}

impl Stop {
    fn pull(&self) {
        self.pulled.store(true, Ordering::Release);
        self.waiting.wake();
    }

    fn is_pulled(&self) -> bool {
        self.pulled.load(Ordering::Acquire)
    }

    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        self.waiting.register(context.waker());
        if self.is_pulled() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            open: DashMap::new(),
            swept: Mutex::new(Instant::now()),
        }
    }
}

impl Sessions {
    /// Whether another session may be opened for `subject`; asked before the upstream is.
    pub(super) fn admit(&self, subject: &Subject) -> Result<(), Refusal> {
        let owned = || {
            self.open
                .iter()
                .filter(|session| session.subject.evidence == subject.evidence)
                .take(PER_KEY)
                .count()
        };
        // Counting is for the rare case: nobody can have more than there are.
        if self.open.len() >= IN_ALL || (self.open.len() >= PER_KEY && owned() >= PER_KEY) {
            return Err(Refusal::new(
                Code::SessionLimit,
                format!("{PER_KEY} sessions of this caller, or {IN_ALL} in all, are open"),
            ));
        }
        Ok(())
    }

    /// Opens a session under an id that was never used.
    pub(super) fn open(
        &self,
        subject: &Subject,
        server: Arc<Server>,
        upstream: upstream::Session,
        offer: Offer,
    ) -> Arc<Session> {
        let label = format!("session-{}", id::hex(&id::random::<8>()));
        let subject = Arc::new(Subject {
            conversation: Some(label.into()),
            ..subject.clone()
        });
        let session = Arc::new(Session {
            id: id::token().into(),
            view: View::of(upstream.revision(), &offer),
            upstream: Arc::new(upstream),
            offer,
            questions: Questions::default(),
            resumable: Resumable::default(),
            subject,
            server,
            running: Mutex::default(),
            touched: Mutex::new(Instant::now()),
            listening: AtomicBool::new(false),
            answers: Arc::new(Semaphore::new(ANSWERS)),
            ended: CancellationToken::new(),
        });
        self.open.insert(session.id.clone(), session.clone());
        session
    }

    /// The session of this id, if it is `subject`'s, for `server`, and was opened with the same evidence.
    /// Foreign and unknown ids are answered alike.
    pub(super) fn find(
        &self,
        id: &str,
        subject: &Subject,
        server: &Server,
    ) -> Result<Arc<Session>, Refusal> {
        self.open
            .get(id)
            .map(|session| session.clone())
            .filter(|session| session.is_of(subject, server) && session.touch())
            .ok_or_else(|| Refusal::new(Code::SessionUnknown, "no such session"))
    }

    /// Ends a session; its id stays dead.
    pub(super) fn end(&self, session: &Session) {
        session.end();
        self.open.remove(&session.id);
    }

    /// How many are open.
    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    /// Ends idle sessions and returns them; looks for them once in a while, however often it is called.
    pub(super) fn sweep(&self) -> Vec<Arc<Session>> {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.elapsed() < SWEEP {
            return Vec::new();
        }
        *swept = Instant::now();
        drop(swept);
        let mut over = Vec::new();
        self.open.retain(|_, session| {
            let expired = session.expired();
            if expired {
                session.end();
                over.push(session.clone());
            }
            !expired
        });
        over
    }
}

impl Session {
    /// Takes a request into the session. Ids in flight are unique (MCP 2025-11-25, requests).
    pub(super) fn begin(
        self: &Arc<Self>,
        id: Bytes,
        upstream_id: u64,
    ) -> Result<InFlight, Refusal> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.len() >= IN_FLIGHT {
            return Err(Refusal::new(
                Code::SessionLimit,
                format!("{IN_FLIGHT} requests of this session are in flight"),
            ));
        }
        if running.contains_key(&id) {
            return Err(Refusal::new(
                Code::DuplicateId,
                "another request with this id is in flight",
            ));
        }
        let stop = Arc::new(Stop::default());
        running.insert(
            id.clone(),
            Running {
                upstream_id,
                stop: stop.clone(),
            },
        );
        // Whoever ends the session does so before it stops what it finds here.
        if self.ended.is_cancelled() {
            stop.pull();
        }
        Ok(InFlight {
            session: self.clone(),
            id,
            stop,
        })
    }

    /// Stops the request of this id, once, and tells under which id the upstream knows it.
    pub(super) fn cancel(&self, id: &[u8]) -> Option<u64> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let running = running
            .get(id)
            .filter(|running| !running.stop.is_pulled())?;
        running.stop.pull();
        Some(running.upstream_id)
    }

    /// Stops everything of the session, now and from now on.
    fn end(&self) {
        self.ended.cancel();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.values().for_each(|running| running.stop.pull());
    }

    /// Takes a place among the answers to the server's own requests; `None` for a server that floods.
    pub(super) fn answer(&self) -> Option<OwnedSemaphorePermit> {
        self.answers.clone().try_acquire_owned().ok()
    }

    /// Takes the one place for a listening stream; `None` while it is taken.
    pub(super) fn listen(self: &Arc<Self>) -> Option<Listening> {
        let free = !self.listening.swap(true, Ordering::AcqRel);
        free.then(|| Listening {
            session: self.clone(),
            ended: self.ended.clone(),
        })
    }

    /// The subject, in the conversation that the session is where the caller names none.
    pub(super) fn subject(&self) -> &Arc<Subject> {
        &self.subject
    }

    /// Leave to speak to its server once more, if it is still the same and its subject may still use it.
    pub(super) fn permit(&self, policy: &Snapshot) -> Option<Permit> {
        let permit = policy::decide(policy, &self.subject, &self.server.name).ok()?;
        (permit.server().endpoint == self.server.endpoint).then_some(permit)
    }

    fn is_of(&self, subject: &Subject, server: &Server) -> bool {
        self.subject.tenant == subject.tenant
            && self.subject.user == subject.user
            && self.subject.agent == subject.agent
            && self.subject.evidence == subject.evidence
            && self.server.name == server.name
            && self.server.endpoint == server.endpoint
    }

    /// Uses the session, if it is not over.
    fn touch(&self) -> bool {
        let now = Instant::now();
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_over(*touched, now) {
            return false;
        }
        *touched = now;
        true
    }

    fn expired(&self) -> bool {
        let touched = *self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_over(touched, Instant::now())
    }

    /// A session whose stream is open is in use, however long nothing is asked.
    fn is_over(&self, touched: Instant, now: Instant) -> bool {
        now - touched >= IDLE && !self.listening.load(Ordering::Relaxed)
    }
}

/// A request's place in its session, given up when dropped.
pub(super) struct InFlight {
    session: Arc<Session>,
    id: Bytes,
    stop: Arc<Stop>,
}

impl InFlight {
    /// Whether the client cancelled the request, or its session ended.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_pulled()
    }

    /// Returns when the client cancelled the request, or its session ended.
    pub(super) async fn stopped(&self) {
        poll_fn(|context| self.stop.poll(context)).await;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut running = self
            .session
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        running.remove(&self.id);
    }
}

/// The listening stream's place in its session, given up when dropped.
pub(super) struct Listening {
    session: Arc<Session>,
    ended: CancellationToken,
}

impl Listening {
    /// Returns when the session ended.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Up to now the session was in use; whoever loses the stream has time to come back.
        self.session.touch();
        self.session.listening.store(false, Ordering::Release);
    }
}
