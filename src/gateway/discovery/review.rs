//! All that a server shows, read without a caller: for the operator who looks at its pins.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, de::IgnoredAny};
use tokio::time::{Instant, timeout_at};

use super::{discover::instructions, pinning, sheets::Sheets};
use crate::{
    audit::{Kind, OutcomeKind, Phase, Record, RecordTarget},
    catalog::{Item, Shown, View},
    deadline::{CEILING, Deadline},
    egress::Effect,
    gateway::{
        Gateway,
        request::entry::target,
        session::{farewell, questions},
    },
    mcp::{Era, Method, Revision, capabilities::Offer, items::List},
    policy::{self, Permit},
    refusal::{Code, Fault, Refusal},
    upstream::{Hello, Message, Request, Session, Wire, own},
};

impl Gateway {
    /// Reads all lists and the instructions of a server, in each era that it speaks, as a client that has whatever
    /// `[relay]` lets the server ask for. Like a caller's lists, they are held against what is pinned, and at first use
    /// taken.
    ///
    /// # Errors
    ///
    /// The server does not answer, or pins or records cannot be kept.
    pub async fn review(&self, permit: &Permit) -> Result<Vec<Item>, Refusal> {
        self.shared.journal.admit_read()?;
        let started = Instant::now();
        let mut review = Review {
            gateway: self,
            permit,
            offer: Offer::all(|question| questions::relayed(permit.server().relay, question)),
            deadline: Deadline::after(CEILING),
            items: Vec::new(),
            target: None,
        };
        let result = review.run().await;
        let mut record = Record::new(self.shared.clock.now(), Kind::Catalog, Phase::Outcome);
        record.server = Some(permit.server().name.clone());
        record.generation = Some(permit.generation());
        record.method = Some("read".into());
        record.target = review.target;
        record.took = Some(started.elapsed());
        let code = result.as_ref().err().map(|refusal| refusal.code);
        let outcome = match code {
            None => OutcomeKind::Allowed,
            Some(code) if code.fault() == Fault::Policy => OutcomeKind::Refused,
            Some(_) => OutcomeKind::Failed,
        };
        let _kept = self.shared.journal.queue(record.ended(outcome, code))?;
        result.map(|()| review.items)
    }
}

/// One reading.
struct Review<'a> {
    gateway: &'a Gateway,
    permit: &'a Permit,
    offer: Offer,
    deadline: Deadline,
    items: Vec<Item>,
    target: Option<RecordTarget>,
}

impl Review<'_> {
    async fn run(&mut self) -> Result<(), Refusal> {
        let upstream = &self.gateway.upstream;
        let modern = upstream.speaks_modern(self.permit, self.deadline).await?;
        if modern {
            self.discover().await?;
        }
        if self.permit.server().era == policy::Era::Modern {
            return Ok(());
        }
        match self.session().await {
            // A modern server need not have sessions, and says so in one of these ways.
            Err(refusal) if modern && has_no_sessions(refusal.code) => Ok(()),
            other => other,
        }
    }

    /// Everything that a modern client is shown.
    async fn discover(&mut self) -> Result<(), Refusal> {
        let id = self.gateway.upstream.next_id();
        let body = own::discover_body(id, self.offer.as_json());
        let wire = Wire::Modern(own::fields(Method::Discover));
        let message = self.ask(wire, body, id).await?;
        self.instructed(View::of(Revision::MODERN, &self.offer), &message)
            .await?;
        self.lists(&message, None).await
    }

    /// Everything that a session shows.
    async fn session(&mut self) -> Result<(), Refusal> {
        let client = format!(
            r#"{{"name":"tollgate","version":"{}"}}"#,
            env!("CARGO_PKG_VERSION")
        );
        let hello = Hello::new(Revision::LEGACY, self.offer.as_json(), &client);
        let opened = farewell::open(self.gateway, self.permit, hello, self.deadline).await?;
        let (Some(session), welcome) = opened else {
            return Err(Refusal::new(
                Code::UpstreamEra,
                format!("server `{}` opens no session", self.permit.server().name),
            ));
        };
        let session = Arc::new(session);
        let result = self.in_session(&session, &welcome).await;
        farewell::say(&self.gateway.upstream, self.permit, &session).await;
        result
    }

    async fn in_session(
        &mut self,
        session: &Arc<Session>,
        welcome: &Message,
    ) -> Result<(), Refusal> {
        const READY: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let upstream = &self.gateway.upstream;
        upstream
            .tell(self.permit, session, READY.into(), self.deadline)
            .await?;
        let view = View::of(session.revision(), &self.offer);
        self.instructed(view, welcome).await?;
        self.lists(welcome, Some(session)).await
    }

    async fn instructed(&mut self, view: View, message: &Message) -> Result<(), Refusal> {
        let found = instructions(self.permit, message)?;
        if let Some(found) = found {
            self.items.extend(Shown::instructions(found).item.ok());
        }
        let put_back = pinning::instructions(self.gateway, self.permit, view, message, found);
        put_back.await.map(drop)
    }

    /// The lists that the server says it has; tools are asked for in any case.
    async fn lists(
        &mut self,
        hello: &Message,
        session: Option<&Arc<Session>>,
    ) -> Result<(), Refusal> {
        let offered = offered(hello);
        let lists = [
            (List::Tools, true),
            (List::Prompts, offered.prompts.is_some()),
            (List::Templates, offered.resources.is_some()),
        ];
        for (list, _) in lists.into_iter().filter(|(_, has)| *has) {
            let revision = session.map_or(Revision::MODERN, |session| session.revision());
            let view = View::of(revision, &self.offer);
            let shown = self.list(list, view, session).await?;
            self.items
                .extend(shown.into_iter().filter_map(|shown| shown.item.ok()));
        }
        Ok(())
    }

    /// All pages of a list; one that the server answers with an error is empty.
    async fn list(
        &mut self,
        list: List,
        view: View,
        session: Option<&Arc<Session>>,
    ) -> Result<Vec<Shown>, Refusal> {
        let book = pinning::open(self.gateway, self.permit).await?;
        let waiting = timeout_at(self.deadline.instant(), book.turn_anew(view, list)).await;
        let Some(turn) = waiting.ok().flatten() else {
            return Err(pinning::still_reading(self.permit));
        };
        let mut sheets = Sheets::new(self.permit, list);
        let mut cursor: Option<String> = None;
        loop {
            let message = self.page(list, session, cursor.as_deref()).await?;
            cursor = match sheets.add(&message).await? {
                Some(next) => next,
                // What came before an error is not the whole list.
                None => return Ok(Vec::new()),
            };
            if cursor.is_none() {
                break;
            }
        }
        pinning::finish(self.gateway, self.permit, turn, sheets.shown).await
    }

    async fn page(
        &mut self,
        list: List,
        session: Option<&Arc<Session>>,
        cursor: Option<&str>,
    ) -> Result<Message, Refusal> {
        let id = self.gateway.upstream.next_id();
        let (era, wire) = match session {
            Some(session) => (Era::Legacy, Wire::Legacy(session)),
            None => (Era::Modern, Wire::Modern(own::fields(list.method()))),
        };
        let body = own::list_body(list, era, id, cursor, self.offer.as_json());
        self.ask(wire, body, id).await
    }

    async fn ask(&mut self, wire: Wire<'_>, body: Bytes, id: u64) -> Result<Message, Refusal> {
        let request = Request {
            permit: self.permit,
            wire,
            body,
            id,
            effect: &Effect::Read,
            credential: None,
            deadline: self.deadline,
        };
        let (message, destination) = self.gateway.upstream.ask_whole(request).await?;
        self.target = Some(target(destination));
        Ok(message?)
    }
}

/// Of the capabilities of a server, those that stand for lists.
#[derive(Default, Deserialize)]
struct Offered {
    prompts: Option<IgnoredAny>,
    resources: Option<IgnoredAny>,
}

/// What a server says of itself in its first answer.
fn offered(hello: &Message) -> Offered {
    #[derive(Deserialize)]
    struct Hello {
        capabilities: Option<Offered>,
    }
    let hello = serde_json::from_str::<Hello>(hello.result().unwrap_or("{}"));
    let offered = hello.ok().and_then(|hello| hello.capabilities);
    offered.unwrap_or_default()
}

/// How modern servers refuse sessions.
fn has_no_sessions(code: Code) -> bool {
    matches!(
        code,
        Code::UpstreamEra | Code::UpstreamStatus | Code::UpstreamContentType
    )
}
