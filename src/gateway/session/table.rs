//! Every open session: who may open another, whose a session id is, and which are over.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ahash::RandomState;
use dashmap::DashMap;
use tokio::time::Instant;

use super::{Client, Session};
use crate::{
    policy::Server,
    refusal::{Code, Refusal},
    subject::Subject,
    upstream,
};

/// Sessions of one key at most, whomever it acts for.
const PER_KEY: usize = 4_096;
/// Sessions in all at most.
const IN_ALL: usize = 65_536;
/// How often idle sessions are looked for, at most.
const SWEEP: Duration = Duration::from_secs(60);

/// Every open session, shared by all workers.
pub(in crate::gateway) struct Sessions {
    open: DashMap<Arc<str>, Arc<Session>, RandomState>,
    swept: Mutex<Instant>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            open: DashMap::default(),
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

    /// Opens a session.
    pub(super) fn open(
        &self,
        subject: &Subject,
        server: Arc<Server>,
        upstream: upstream::Session,
        client: Client,
    ) -> Arc<Session> {
        let session = Arc::new(Session::new(subject, server, upstream, client));
        self.open.insert(session.id.clone(), session.clone());
        session
    }

    /// The session of this id, if it is `subject`'s, for `server`, and was opened with the same evidence.
    /// Foreign and unknown ids are answered alike.
    pub(in crate::gateway) fn find(
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
    pub(in crate::gateway) fn count(&self) -> usize {
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
