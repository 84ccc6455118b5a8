//! Owns: one request, from a known caller to its reply: judged, pinned, recorded, forwarded, answered.
//! Imports: layers 0–3.
//! Never: authenticates, opens a socket, or lets a reply go whose record is not kept.
//! Fails as: [`crate::refusal::Refusal`], answered in the caller's own era.

// What is asked: as it was understood, with its record.
mod request;
// Sessions of the older protocol.
mod session;
// How much may be under way at once.
mod limits;
// One `tools/call`, from top to bottom, and other requests that go on as they are.
mod call;
// Connections of callers to servers, and what is told to those who have none.
mod connection;
// What a server shows: lists, prompts, instructions, held against its pins.
mod discovery;
// Tollgate's own tools.
mod builtin;
// What of an answer reaches the caller.
mod reply;
// What leaves event by event.
mod streams;

use std::{sync::Arc, time::SystemTime};

use bytes::Bytes;
use http::{Method, Response, request::Parts};
use tokio::{sync::watch, time::Instant};
use uuid::Uuid;

pub use self::reply::ReplyBody;
use self::{
    call::pass,
    discovery::{discover, list},
    limits::{lanes::Lanes, seats::Seats},
    reply::finding::{self, Finding},
    request::{asked::Asked, entry::Entry},
    session::{
        farewell::{self, Farewells},
        lifecycle, questions,
        table::Sessions,
        tell,
    },
    streams::{Streams, resume, subscription},
};
use crate::{
    audit::{Journal, Kind, Phase, Record},
    budget::Budget,
    catalog::Catalog,
    clock::Clock,
    connect::Connections,
    identity::Caller,
    mcp::{self, Era, items::List},
    policy::{self, Permit, Snapshot},
    refusal::{Code, Refusal},
    telemetry::Metrics,
    upstream::Upstream,
    vault::Sealer,
};

/// The pipeline of one worker; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    upstream: Arc<Upstream>,
    shared: Arc<Shared>,
}

/// What all workers share.
pub struct Shared {
    journal: Journal,
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
    catalog: Catalog,
    sessions: Sessions,
    streams: Streams,
    farewells: Farewells,
    tellings: Seats,
    budget: Budget,
    lanes: Lanes,
    /// Seals what a client carries from one round of a call to the next.
    rounds: Sealer,
    connections: Connections,
    /// How many connections were made: who waits for one looks again then.
    made: watch::Sender<u64>,
}

impl Shared {
    /// Nothing known of any server, no session open.
    pub fn new(
        journal: Journal,
        metrics: Arc<Metrics>,
        clock: Arc<dyn Clock>,
        rounds: Sealer,
        catalog: Catalog,
        connections: Connections,
    ) -> Self {
        Self {
            lanes: Lanes::new(&metrics),
            journal,
            metrics,
            clock,
            catalog,
            sessions: Sessions::default(),
            streams: Streams::default(),
            farewells: Farewells::default(),
            tellings: tell::seats(),
            budget: Budget::default(),
            rounds,
            connections,
            made: watch::Sender::default(),
        }
    }

    /// How many sessions are open.
    pub fn open_sessions(&self) -> usize {
        self.sessions.count()
    }

    /// Takes up another policy: forgets what was known of servers that it no longer names, and ends listening streams,
    /// which may have been opened by callers whom it does not let in. Calls end by the policy that they began with.
    pub fn take_up(&self, policy: &Snapshot) {
        self.streams.take_up(policy.generation);
        self.catalog
            .retain(|name| policy.servers.contains_key(name));
    }

    /// What is pinned of each server.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The process drains: ends listening streams, which have no end of their own, and refuses calls that still wait for
    /// others. Calls that run do so to their end.
    pub fn drain(&self) {
        self.streams.end();
        self.lanes.drain();
    }
}

/// A request whose caller is known and whose body is read. It shows nothing of itself: headers and body hold secrets.
pub struct Ask {
    /// Who asks.
    pub caller: Caller,
    /// The policy that judges it, to its end.
    pub policy: Arc<Snapshot>,
    /// The server that the path names.
    pub server: Arc<str>,
    /// Method and headers.
    pub head: Parts,
    /// The body; empty on GET and DELETE.
    pub body: Bytes,
    /// When it came, by the wall.
    pub time: SystemTime,
    /// The same moment, to measure from.
    pub started: Instant,
    /// The name of the request in records.
    pub request_id: Uuid,
}

impl Gateway {
    /// The pipeline over `upstream`.
    pub fn new(upstream: Upstream, shared: Arc<Shared>) -> Self {
        Self {
            upstream: Arc::new(upstream),
            shared,
        }
    }

    /// Ends sessions that have long been idle, and tells their servers where `policy`, the one that holds, allows it.
    /// To be called now and then, from a runtime.
    pub fn sweep(&self, policy: &Snapshot) {
        farewell::sweep(self, policy);
        self.shared.budget.kept.sweep();
    }

    /// Answers one request, whatever it is.
    pub async fn serve(&self, ask: &Ask) -> Response<ReplyBody> {
        let mut entry = self.open(ask);
        if &*ask.server == builtin::SERVER {
            return Box::pin(builtin::serve(self, ask, entry)).await;
        }
        let permit = match policy::decide(&ask.policy, &ask.caller, &ask.server) {
            Ok(permit) => permit,
            Err(refusal) => return finding::unread(entry, Era::Legacy, &refusal.into()),
        };
        entry.record().generation = Some(permit.generation());
        match ask.head.method {
            Method::POST => self.post(ask, &permit, entry).await,
            Method::GET => Box::pin(resume::get(self, ask, &permit, entry)).await,
            Method::DELETE => Box::pin(lifecycle::end(self, ask, &permit, entry)).await,
            _ => {
                let refusal = Refusal::new(
                    Code::MethodNotAllowed,
                    "only POST, GET and DELETE are served",
                );
                finding::unread(entry, Era::Legacy, &refusal.into())
            }
        }
    }

    async fn post(&self, ask: &Ask, permit: &Permit, mut entry: Box<Entry>) -> Response<ReplyBody> {
        let asked = match Asked::read(self, ask, Some(permit), &mut entry) {
            Ok(asked) => asked,
            Err((era, rejection)) => return finding::unread(entry, era, &rejection),
        };
        match self.answer(ask, &asked, permit, &mut entry).await {
            Ok(found) => found.reply(self, &asked, permit, entry).await,
            Err(refusal) => {
                if let Some(session) = &asked.session {
                    lifecycle::lose(self, session, refusal.code);
                }
                if connection::wants_page(refusal.code) {
                    let asking = connection::ask(self, &asked, permit, entry, refusal);
                    return Box::pin(asking).await;
                }
                finding::refused(entry, &asked, refusal).await
            }
        }
    }

    async fn answer(
        &self,
        ask: &Ask,
        asked: &Asked<'_>,
        permit: &Permit,
        entry: &mut Entry,
    ) -> Result<Finding, Refusal> {
        let method = asked.asker.method;
        if let Some(method) = method {
            entry.is(kind(method), method.as_str());
        }
        // Calls are what there is much of: the state of everything else is boxed, so that it does not weigh on them.
        if method == Some(mcp::Method::ToolsCall) {
            if let Some(tool) = builtin::called(asked, permit) {
                return Box::pin(builtin::call(self, ask, asked, entry, tool)).await;
            }
            return call::call(self, ask, asked, permit, entry).await;
        }
        Box::pin(self.answer_other(ask, asked, permit, entry)).await
    }

    async fn answer_other(
        &self,
        ask: &Ask,
        asked: &Asked<'_>,
        permit: &Permit,
        entry: &mut Entry,
    ) -> Result<Finding, Refusal> {
        use mcp::Method as M;
        match asked.asker.method {
            Some(M::ToolsList) => list::list(self, ask, asked, permit, entry, List::Tools).await,
            Some(M::PromptsList) => {
                list::list(self, ask, asked, permit, entry, List::Prompts).await
            }
            Some(M::TemplatesList) => {
                list::list(self, ask, asked, permit, entry, List::Templates).await
            }
            Some(M::Discover) => discover::discover(self, ask, asked, permit, entry).await,
            Some(M::Initialize) => lifecycle::initialize(self, ask, asked, permit, entry).await,
            Some(M::Listen) => subscription::listen(self, ask, asked, permit, entry).await,
            Some(M::Ping) => Ok(Finding::Empty),
            Some(M::Cancelled) => lifecycle::cancelled(self, asked, permit),
            Some(M::Initialized | M::Progress | M::RootsChanged) => {
                lifecycle::notified(self, asked, permit).await
            }
            Some(_) => pass::pass(self, ask, asked, permit, entry).await,
            // A response, or a notification that means nothing here.
            None => questions::answer(self, asked, permit, entry).await,
        }
    }

    fn count_sessions(&self) {
        let count = self.shared.open_sessions();
        self.shared.metrics.mcp_sessions.set(count as i64);
    }

    /// The record of a request of which only the head is known.
    fn open(&self, ask: &Ask) -> Box<Entry> {
        let mut record = Record::new(ask.time, Kind::Request, Phase::Outcome);
        record.subject = Some(ask.caller.subject().clone());
        record.server = Some(ask.server.clone());
        record.request_id = Some(ask.request_id);
        Entry::open(self, record, ask.started)
    }
}

/// Under which kind a message's record stands.
fn kind(method: mcp::Method) -> Kind {
    match method {
        mcp::Method::ToolsCall => Kind::Call,
        mcp::Method::ToolsList => Kind::List,
        _ => Kind::Request,
    }
}
