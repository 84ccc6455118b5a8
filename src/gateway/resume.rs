//! Clients that lost a stream of their session and come back for the rest of it, which the server keeps (MCP
//! 2025-11-25, transports, resumability). A call that waits for its client keeps its place and its open record.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderValue, Response};
use tokio::{
    runtime::Handle,
    sync::oneshot,
    time::{sleep_until, timeout},
};

use super::{
    Ask, Entry, Gateway, ReplyBody,
    asked::Ticket,
    asker::Asker,
    courier::{Courier, Line},
    entry::Ending,
    event_id::{self, Stream},
    finding,
    legacy::session_of,
    listening,
    relay::Relay,
    reply,
    session::Session,
};
use crate::{
    deadline::Deadline,
    mcp::{Era, headers},
    policy::Permit,
    refusal::{Code, Refusal},
};

/// Calls of one session that wait for their client at most.
const LOST: usize = 16;
/// Answered calls of one session whose answer can be fetched again, at most.
const ANSWERED: usize = 16;
/// How long a stream may take to give its call up to another.
const HAND_OVER: Duration = Duration::from_secs(1);

/// What of one session can be gone on with.
#[derive(Default)]
pub(super) struct Resumable(Mutex<Calls>);

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
pub(super) type Claim = oneshot::Sender<Box<Lost>>;

/// A call without the stream that its answer comes on.
pub(super) struct Call {
    pub(super) gateway: Gateway,
    pub(super) permit: Permit,
    pub(super) entry: Entry,
    pub(super) courier: Courier,
    pub(super) ticket: Ticket,
    pub(super) asker: Asker,
}

/// A call whose client went away. Dropped, its record says so.
pub(super) struct Lost {
    pub(super) session: Arc<Session>,
    pub(super) call: Call,
    /// The call's own end.
    pub(super) until: Deadline,
}

impl Lost {
    /// Its stream, from the server's event `last`.
    fn resumed(self, last: &HeaderValue) -> Relay {
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
    pub(super) fn remember(&self, call: u64, asker: &Asker) {
        let mut calls = self.lock();
        if calls.answered.len() >= ANSWERED {
            calls.answered.pop_front();
        }
        calls.answered.push_back((call, asker.clone()));
    }

    fn answered(&self, call: u64) -> Option<Asker> {
        let calls = self.lock();
        let mut answered = calls.answered.iter();
        let (_, asker) = answered.find(|(id, _)| *id == call)?;
        Some(asker.clone())
    }

    /// Takes a call over from whoever has it.
    async fn claim(&self, call: u64) -> Option<Box<Lost>> {
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
pub(super) struct Offered {
    session: Arc<Session>,
    call: u64,
    claims: oneshot::Receiver<Claim>,
}

impl Offered {
    pub(super) fn new(session: Arc<Session>, call: u64) -> Self {
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

    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Gives a call up to who claims it.
    pub(super) fn hand_over(self, lost: Box<Lost>, claim: Claim) {
        let (session, call) = (self.session.clone(), self.call);
        drop(self);
        if let Err(lost) = claim.send(lost) {
            // The claim was given up in the meantime.
            Self::new(session, call).keep(lost);
        }
    }

    /// Keeps a call for its client, unless too many are kept already.
    pub(super) fn keep(self, lost: Box<Lost>) {
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
            ..
        } = &lost.call;
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
pub(super) async fn claimed(offered: &mut Option<Offered>) -> Claim {
    if let Some(offered) = offered
        && let Ok(claim) = (&mut offered.claims).await
    {
        return claim;
    }
    std::future::pending().await
}

/// Answers a GET: a listening stream, or what is left of the stream that `Last-Event-ID` names.
pub(super) async fn get(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
    mut entry: Entry,
) -> Response<ReplyBody> {
    entry.record().method = Some("GET".into());
    let named = ask.head.headers.get(headers::LAST_EVENT_ID);
    let named = named.filter(|id| !id.is_empty());
    let place = named.map(|id| id.to_str().ok().and_then(event_id::read));
    let place = match place {
        None => return listening::listen(gateway, ask, permit, entry, None).await,
        Some(Some((Stream::Listening, last))) => {
            return listening::listen(gateway, ask, permit, entry, Some(last)).await;
        }
        Some(Some((Stream::Call(call), last))) => Some((call, last)),
        Some(None) => None,
    };
    match find(gateway, ask, permit, &mut entry, place).await {
        Ok(Found::Lost(lost, last)) => go_on(gateway, permit, entry, lost, &last),
        Ok(Found::Answered(session, call, asker, last)) => {
            let line = Line::Session {
                session: session.clone(),
                call: Some(call),
            };
            let call = Call {
                gateway: gateway.clone(),
                permit: permit.clone(),
                entry,
                courier: Courier::new(gateway, permit, line),
                ticket: Ticket::of_answered(call, session.clone()),
                asker,
            };
            let until = Deadline::after(permit.server().limits.call);
            let lost = Lost {
                session,
                call,
                until,
            };
            reply::events(lost.resumed(&last).events())
        }
        Err(refusal) => finding::unread(entry, Era::Legacy, &refusal.into()),
    }
}

/// What a client came back for, and after which of the server's events.
enum Found {
    Lost(Box<Lost>, HeaderValue),
    Answered(Arc<Session>, u64, Asker, HeaderValue),
}

/// Looks in the caller's own session, and nowhere else. To answer an unknown id with a stream would lose what the client
/// waits for without a word.
async fn find(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
    entry: &mut Entry,
    place: Option<(u64, HeaderValue)>,
) -> Result<Found, Refusal> {
    let session = session_of(gateway, ask, permit)?;
    listening::check_accept(ask)?;
    let unknown = || {
        Refusal::new(
            Code::ResumeUnknown,
            "`Last-Event-ID` names no stream of this session that can be gone on with",
        )
    };
    let (call, last) = place.ok_or_else(unknown)?;
    entry.admit_read()?;
    if let Some(lost) = session.resumable.claim(call).await {
        return Ok(Found::Lost(lost, last));
    }
    let asker = session.resumable.answered(call).ok_or_else(unknown)?;
    Ok(Found::Answered(session, call, asker, last))
}

/// Goes on with a call that had lost its client. The GET ends here; what comes of the call is told by its own record.
fn go_on(
    gateway: &Gateway,
    permit: &Permit,
    mut entry: Entry,
    mut lost: Box<Lost>,
    last: &HeaderValue,
) -> Response<ReplyBody> {
    if let Err(refusal) = entry.close_queued(Ending::answered()) {
        Offered::new(lost.session.clone(), lost.call.ticket.id).keep(lost);
        return finding::unkept(Era::Legacy, None, refusal.into());
    }
    // The client may have come back to another worker.
    let call = &mut lost.call;
    call.courier.move_to(gateway, permit);
    call.gateway = gateway.clone();
    call.permit = permit.clone();
    reply::events(lost.resumed(last).events())
}
