//! Sessions of the older protocol: how they begin and end, what runs in one, what is asked and told in it.
//!
//! A session id finds a session, it never admits anyone: the caller proves itself on every request, and a session
//! answers only to the subject, the evidence and the server that it was opened with.

pub(super) mod farewell;
pub(super) mod in_flight;
pub(super) mod lifecycle;
pub(super) mod questions;
pub(super) mod table;
pub(super) mod tell;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ahash::RandomState;
use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use self::{in_flight::Running, questions::Questions};
use crate::{
    catalog::View,
    gateway::streams::resume::Resumable,
    id,
    mcp::capabilities::Offer,
    policy::{self, Permit, Server, Snapshot},
    subject::Subject,
    upstream,
};

/// A session without a request for so long is over.
const IDLE: Duration = Duration::from_secs(60 * 60);
/// Answers to the server's own requests that are on their way at once at most, for one session.
const ANSWERS: usize = 8;

/// One session: the client's side, and the upstream's side that it alone uses.
pub(super) struct Session {
    id: Arc<str>,
    pub(super) upstream: Arc<upstream::Session>,
    /// What the client offers to the server.
    pub(super) offer: Offer,
    /// Whether the client opens pages that Tollgate asks it to.
    pub(super) opens_pages: bool,
    /// From where it looks at the server.
    pub(super) view: View,
    /// What the server asks of the client.
    pub(super) questions: Questions,
    /// What of it can be resumed.
    pub(super) resumable: Resumable,
    subject: Arc<Subject>,
    server: Arc<Server>,
    running: Mutex<HashMap<Bytes, Running, RandomState>>,
    touched: Mutex<Instant>,
    listening: AtomicBool,
    answers: Arc<Semaphore>,
    ended: CancellationToken,
}

/// What a client says of itself that its session goes by.
pub(super) struct Client {
    /// What it offers to the server.
    pub(super) offer: Offer,
    /// Whether it opens pages that it is asked to.
    pub(super) opens_pages: bool,
}

impl Session {
    /// A session of `subject`'s under an id that was never used.
    fn new(
        subject: &Subject,
        server: Arc<Server>,
        upstream: upstream::Session,
        client: Client,
    ) -> Self {
        let Client { offer, opens_pages } = client;
        let label = format!("session-{}", id::hex(&id::random::<8>()));
        let subject = Arc::new(Subject {
            conversation: Some(label.into()),
            ..subject.clone()
        });
        Self {
            id: id::token().into(),
            view: View::of(upstream.revision(), &offer),
            upstream: Arc::new(upstream),
            offer,
            opens_pages,
            questions: Questions::default(),
            resumable: Resumable::default(),
            subject,
            server,
            running: Mutex::default(),
            touched: Mutex::new(Instant::now()),
            listening: AtomicBool::new(false),
            answers: Arc::new(Semaphore::new(ANSWERS)),
            ended: CancellationToken::new(),
        }
    }

    /// Stops everything of the session, now and from now on.
    fn end(&self) {
        self.ended.cancel();
        self.stop_all();
    }

    /// Takes a place among the answers to the server's own requests; `None` for a server that floods.
    fn answer(&self) -> Option<OwnedSemaphorePermit> {
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
    fn permit(&self, policy: &Snapshot) -> Option<Permit> {
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
