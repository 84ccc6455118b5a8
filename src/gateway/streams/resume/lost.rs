//! Calls whose client may come back: those whose stream is open, those that lost it, and those that were answered.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::HeaderValue;
use tokio::{
    runtime::Handle,
    sync::oneshot,
    time::{sleep_until, timeout},
};

use crate::{
    deadline::Deadline,
    gateway::{
        Entry, Gateway,
        request::{asked::Ticket, asker::Asker},
        session::Session,
        streams::{courier::Courier, relay::Relay},
    },
    policy::Permit,
    refusal::Code,
};

/// Calls of one session that wait for their client at most.
const LOST: usize = 16;
/// Answered calls of one session whose answer can be fetched again, at most.
const ANSWERED: usize = 16;
/// How long a stream may take to give its call up to another.
const HAND_OVER: Duration = Duration::from_secs(1);

/// What of one session can be resumed.
#[derive(Default)]
pub(in crate::gateway) struct Resumable(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    open: HashMap<u64, Waiting>,
    answered: VecDeque<(u64, Asker)>,
}

struct Waiting {
    claims: oneshot::Sender<Claim>,
    is_lost: bool,
}

/// Asks for a call.
pub(in crate::gateway) type Claim = oneshot::Sender<Box<Lost>>;

/// A call without the stream that its answer comes on.
pub(in crate::gateway) struct Call {
    pub(in crate::gateway) gateway: Gateway,
    pub(in crate::gateway) permit: Permit,
    pub(in crate::gateway) entry: Box<Entry>,
    pub(in crate::gateway) courier: Courier,
    pub(in crate::gateway) ticket: Ticket,
    pub(in crate::gateway) asker: Asker,
}

/// A call whose client went away. Dropped, its record says so.
pub(in crate::gateway) struct Lost {
    pub(in crate::gateway) session: Arc<Session>,
    pub(in crate::gateway) call: Call,
    /// The call's own end.
    pub(in crate::gateway) until: Deadline,
}

impl Lost {
    /// Its stream, from the server's event `last`.
    pub(super) fn resumed(self, last: &HeaderValue) -> Box<Relay> {
        let Self {
            session,
            call,
            until,
        } = self;
        let (upstream, id) = (&call.gateway.upstream, call.ticket.id);
        let rest = upstream.resume(&call.permit, &session.upstream, id, last.clone(), until);
        let offered = call
            .ticket
            .is_in_flight()
            .then(|| Offered::new(session, id));
        Relay::of(call, Box::new(rest), offered)
    }
}

impl Resumable {
    /// Keeps in mind under which id the client knows a call that was answered.
    pub(in crate::gateway) fn remember(&self, call: u64, asker: &Asker) {
        let mut calls = self.lock();
        if calls.answered.len() >= ANSWERED {
            calls.answered.pop_front();
        }
        calls.answered.push_back((call, asker.clone()));
    }

    pub(super) fn answered(&self, call: u64) -> Option<Asker> {
        let calls = self.lock();
        let mut answered = calls.answered.iter();
        let (_, asker) = answered.find(|(id, _)| *id == call)?;
        Some(asker.clone())
    }

    /// Takes a call over from whoever has it.
    pub(super) async fn claim(&self, call: u64) -> Option<Box<Lost>> {
        let waiting = self.lock().open.remove(&call)?;
        let (claim, lost) = oneshot::channel();
        waiting.claims.send(claim).ok()?;
        timeout(HAND_OVER, lost).await.ok()?.ok()
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that its client may come back for, until this is dropped.
pub(in crate::gateway) struct Offered {
    session: Arc<Session>,
    call: u64,
    claims: oneshot::Receiver<Claim>,
}

impl Offered {
    pub(in crate::gateway) fn new(session: Arc<Session>, call: u64) -> Self {
        let (sender, claims) = oneshot::channel();
        let waiting = Waiting {
            claims: sender,
            is_lost: false,
        };
        session.resumable.lock().open.insert(call, waiting);
        Self {
            session,
            call,
            claims,
        }
    }

    pub(in crate::gateway) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Gives a call up to who claims it.
    pub(in crate::gateway) fn hand_over(self, lost: Box<Lost>, claim: Claim) {
        let (session, call) = (self.session.clone(), self.call);
        drop(self);
        if let Err(lost) = claim.send(lost) {
            // The claim was given up in the meantime.
            Self::new(session, call).keep(lost);
        }
    }

    /// Keeps a call for its client, unless too many are kept already.
    pub(in crate::gateway) fn keep(self, lost: Box<Lost>) {
        if let (true, Ok(runtime)) = (self.note_lost(), Handle::try_current()) {
            runtime.spawn(self.wait(lost));
        }
    }

    fn note_lost(&self) -> bool {
        let mut calls = self.session.resumable.lock();
        if calls.open.values().filter(|call| call.is_lost).count() >= LOST {
            return false;
        }
        // It may be claimed this very moment; then it is as good as handed over.
        if let Some(waiting) = calls.open.get_mut(&self.call) {
            waiting.is_lost = true;
        }
        true
    }

    /// Until the client comes back, or cancels the call, or the session ends, or the call's time is up.
    async fn wait(mut self, lost: Box<Lost>) {
        let Call {
            gateway,
            permit,
            ticket,
            courier,
            ..
        } = &lost.call;
        let _paused = courier.pause();
        tokio::select! {
            biased;
            claim = &mut self.claims => if let Ok(claim) = claim {
                self.hand_over(lost, claim);
            },
            () = ticket.stopped() => {}
            () = sleep_until(lost.until.instant()) => {
                ticket.abandon_after(gateway, permit, Code::CallTimeout);
            }
        }
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        self.session.resumable.lock().open.remove(&self.call);
    }
}

/// Returns when somebody claims the call; never while nobody may.
pub(in crate::gateway) async fn claimed(offered: &mut Option<Offered>) -> Claim {
    if let Some(offered) = offered
        && let Ok(claim) = (&mut offered.claims).await
    {
        return claim;
    }
    std::future::pending().await
}
