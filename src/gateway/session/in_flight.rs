//! What runs in a session, and what stops it.

use std::{
    future::poll_fn,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;

use super::Session;
use crate::refusal::{Code, Refusal};

/// Requests in flight in one session at most.
const IN_FLIGHT: usize = 256;

impl Session {
    /// Takes a request into the session. Ids in flight are unique (MCP 2025-11-25, requests).
    pub(in crate::gateway) fn begin(
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

    /// Stops all that runs.
    pub(super) fn stop_all(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.values().for_each(|running| running.stop.pull());
    }
}

/// A request's place in its session, given up when dropped.
pub(in crate::gateway) struct InFlight {
    session: Arc<Session>,
    id: Bytes,
    stop: Arc<Stop>,
}

impl InFlight {
    /// Whether the client cancelled the request, or its session ended.
    pub(in crate::gateway) fn is_stopped(&self) -> bool {
        self.stop.is_pulled()
    }

    /// Returns when the client cancelled the request, or its session ended.
    pub(in crate::gateway) async fn stopped(&self) {
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

pub(super) struct Running {
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
