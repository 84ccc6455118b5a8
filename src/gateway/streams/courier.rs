//! What a server says on a stream beside the answer, on its way to the client: news that is relayed, and questions that
//! the client offers to answer.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::{
    gateway::{
        Gateway,
        discovery::pinning,
        limits::lanes::{Pause, Paused},
        reply::results::{self, Turn},
        session::{Session, questions, tell},
    },
    mcp::{Envelope, News, Question, envelope::splice, sse},
    policy::Permit,
    refusal::Code,
    upstream::{Asking, Item},
};

/// Carries what one stream brings.
pub(in crate::gateway) struct Courier {
    gateway: Gateway,
    permit: Permit,
    line: Line,
    turn: Turn,
}

/// Which stream it is.
pub(in crate::gateway) enum Line {
    /// The answer to a modern request; `logs` where it asked for them.
    Request { logs: bool },
    /// A session's: of the request with this id on the upstream's side, or of none.
    Session {
        session: Arc<Session>,
        call: Option<u64>,
        /// Lets the request's seats to others, where it has any.
        pause: Option<Pause>,
    },
}

impl Courier {
    pub(super) fn new(gateway: &Gateway, permit: &Permit, line: Line, turn: Turn) -> Self {
        Self {
            gateway: gateway.clone(),
            permit: permit.clone(),
            line,
            turn,
        }
    }

    /// Goes on by the means of another worker, which the client has come back to.
    pub(super) fn move_to(&mut self, gateway: &Gateway, permit: &Permit) {
        self.gateway = gateway.clone();
        self.permit = permit.clone();
    }

    /// Leaves the seats of the call to others until what this returns is dropped: it waits for its person, or client.
    pub(super) fn pause(&self) -> Option<Arc<Paused>> {
        match &self.line {
            Line::Session { pause, .. } => pause.as_ref().map(Pause::begin),
            Line::Request { .. } => None,
        }
    }

    /// Writes what goes on to the client; answers are not for it.
    pub(super) fn carry(&self, item: Item, out: &mut BytesMut) {
        match item {
            Item::Notification { news, text } => self.tell(news, text, out),
            Item::Progress(events) => {
                self.turn.run(&self.gateway, &self.permit, &events, out);
            }
            Item::Request(asking) => self.ask(&asking, out),
            Item::Answer(_) => {}
        }
    }

    fn tell(&self, news: News, text: Bytes, out: &mut BytesMut) {
        if news == News::ListChanged {
            pinning::changed(&self.gateway, &self.permit, &text);
        }
        let goes_on = match (&self.line, news) {
            (Line::Request { .. }, News::Progress) => true,
            // A server logs only for requests that asked for it (MCP 2026-07-28, logging).
            (Line::Request { logs }, News::Log) => *logs,
            (Line::Request { .. }, _) | (Line::Session { .. }, News::Acknowledged) => false,
            (Line::Session { session, .. }, News::Cancelled) => {
                return take_back(session, &text, out);
            }
            (Line::Session { .. }, _) => true,
        };
        if !goes_on {
            return;
        }
        let turn = &self.turn;
        if let Some(text) = turn.notice(&self.gateway, &self.permit, news, text) {
            sse::encode(out, &[&text]);
        }
    }

    /// In the modern era servers ask in their answers, and a request on a stream has no way back.
    fn ask(&self, asking: &Asking, out: &mut BytesMut) {
        let Asking { method, id, text } = asking;
        let Line::Session { session, call, .. } = &self.line else {
            return;
        };
        if **method == *"ping" {
            return tell::pong(&self.gateway, &self.permit, session, id);
        }
        let Some(question) = Question::find(method) else {
            return self.refuse(session, id, Code::MethodUnknown, "no such method here");
        };
        // Under the strict rules: what is judged is what every client reads.
        let Ok(envelope) = Envelope::inbound(text) else {
            let why = "clients would read this in different ways";
            return self.refuse(session, id, Code::InvalidParams, why);
        };
        if let Err(why) = questions::admit(&session.offer, question, envelope.params.as_deref()) {
            let code = match question {
                Question::Elicit if envelope.params.is_some() => Code::InvalidParams,
                _ => Code::MethodUnknown,
            };
            return self.refuse(session, id, code, why);
        }
        let said = results::said(&self.permit, text.clone());
        let Some(text) = said.as_ref() else {
            return self.refuse(session, id, Code::InvalidParams, "the question is too long");
        };
        // Where something in it was changed, its id may stand elsewhere.
        let Ok(envelope) = Envelope::inbound(text) else {
            return self.refuse(
                session,
                id,
                Code::InvalidParams,
                "the question is not valid",
            );
        };
        let put = session.questions.put(question, id, *call, || self.pause());
        match (put, envelope.id) {
            (Some(own), Some(theirs)) => {
                let mut buffer = itoa::Buffer::new();
                let edit = (theirs.part().range(), buffer.format(own).as_bytes());
                sse::encode(out, &[&splice(text, &[edit])]);
            }
            _ => self.refuse(
                session,
                id,
                Code::SessionLimit,
                "too many questions are open",
            ),
        }
    }

    fn refuse(&self, session: &Arc<Session>, id: &str, code: Code, why: &str) {
        tell::refuse(&self.gateway, &self.permit, session, id, code, why);
    }
}

impl Drop for Courier {
    fn drop(&mut self) {
        if let Line::Session {
            session,
            call: Some(call),
            ..
        } = &self.line
        {
            session.questions.forget(*call);
        }
    }
}

/// Tells the client, under the id that it knows, that the server wants no answer any more.
fn take_back(session: &Session, text: &Bytes, out: &mut BytesMut) {
    let Ok(envelope) = Envelope::inbound(text) else {
        return;
    };
    let Some(part) = envelope.params.and_then(|params| params.request_id) else {
        return;
    };
    if let Some(own) = session.questions.take_back(part.as_str()) {
        let mut buffer = itoa::Buffer::new();
        let edit = (part.range(), buffer.format(own).as_bytes());
        sse::encode(out, &[&splice(text, &[edit])]);
    }
}
