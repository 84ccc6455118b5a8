//! What an answer needs of its request, however much later it comes, and what of a modern answer is Tollgate's to say.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    gateway::{
        Gateway,
        call::rounds,
        session::{Session, questions},
    },
    mcp::{self, Era, Method},
    policy::Permit,
    refusal::Refusal,
    subject::Subject,
    upstream::{Edit, Error, Message, ResultKind},
};

/// Policy may change at any moment, so nothing is kept longer than this, in milliseconds.
const MAX_TTL: u64 = 300_000;

/// Who may share a cached answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Scope {
    /// As the server says: every caller gets the same.
    Servers,
    /// Only who asked: others may get something else, or nothing.
    Private,
}

/// A request whose answer is to come. It shows nothing of itself: the body holds secrets.
#[derive(Clone)]
pub(in crate::gateway) struct Asker {
    /// The JSON text of its id; empty where it has none.
    pub(in crate::gateway) id: Bytes,
    /// Its era.
    pub(in crate::gateway) era: Era,
    /// What it asks for; `None` for notifications that mean nothing here, and for responses.
    pub(in crate::gateway) method: Option<Method>,
    /// Who may share the answer.
    pub(in crate::gateway) scope: Scope,
    /// Who asks.
    pub(in crate::gateway) subject: Arc<Subject>,
    /// The request's bytes where the answer may ask, to be bound to them; else none, since they are counted as long as
    /// they are held.
    pub(in crate::gateway) body: Bytes,
    /// Bytes of all results of its turn together.
    pub(in crate::gateway) turn_bytes: usize,
}

impl Asker {
    /// The JSON text of the id; `None` for a notification.
    pub(in crate::gateway) fn id_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.id)
            .ok()
            .filter(|id| !id.is_empty())
    }

    /// What changes in the answer: in the modern era its kind is named, and how long it may be kept is Tollgate's to
    /// say; where it asks, its state is sealed. Usually nothing.
    pub(in crate::gateway) fn edits(
        &self,
        gateway: &Gateway,
        permit: &Permit,
        message: &Message,
        scope: Scope,
        session: Option<&Session>,
    ) -> Result<Vec<Edit>, Refusal> {
        if let Some(error) = message.error() {
            check_pages(permit, error, session)?;
        }
        let (Era::Modern, Some(kind)) = (self.era, message.result_kind()) else {
            return Ok(Vec::new());
        };
        let mut changes = Changes::default();
        match kind {
            ResultKind::Complete => {}
            ResultKind::Untold => changes.set(message, "resultType", None, r#""complete""#),
            ResultKind::InputRequired => return rounds::edits(gateway, self, permit, message),
            ResultKind::Other => {
                return Err(malformed(permit, "a kind of result that was not agreed on"));
            }
        }
        if self.method.is_some_and(Method::is_cacheable) {
            hint(permit, message, scope, &mut changes)?;
        }
        Ok(changes.into_edits(message))
    }
}

/// An error may have people open pages (MCP 2025-11-25, elicitation), which is a question like any other. Modern servers
/// ask in results.
fn check_pages(permit: &Permit, error: &str, session: Option<&Session>) -> Result<(), Refusal> {
    let pages = mcp::wanted_pages(error).map_err(|error| malformed(permit, error.to_string()))?;
    for page in &pages {
        let admitted = match session {
            Some(session) => questions::admit_page(&session.offer, page),
            None => Err("a question where none may be asked"),
        };
        admitted.map_err(|why| malformed(permit, format!("an error that asks: {why}")))?;
    }
    Ok(())
}

/// Members of a result that are replaced or added.
#[derive(Default)]
pub(in crate::gateway) struct Changes {
    edits: Vec<Edit>,
    added: Vec<String>,
}

impl Changes {
    /// Gives the member `name` the value `text`; `found` is its value now, borrowed from [`Message::result`].
    pub(in crate::gateway) fn set(
        &mut self,
        message: &Message,
        name: &str,
        found: Option<&str>,
        text: &str,
    ) {
        match found {
            Some(found) if found == text => {}
            Some(found) => {
                let place = message.part_of_result(found);
                self.edits.extend(place.map(|place| Edit {
                    place,
                    text: text.to_owned(),
                }));
            }
            None => self.added.push(format!(r#""{name}":{text}"#)),
        }
    }

    pub(in crate::gateway) fn into_edits(mut self, message: &Message) -> Vec<Edit> {
        if !self.added.is_empty() {
            self.edits.extend(message.insertion(&self.added.join(",")));
        }
        self.edits
    }
}

#[derive(Deserialize)]
struct Hints<'a> {
    #[serde(borrow, rename = "ttlMs")]
    ttl: Option<&'a RawValue>,
    #[serde(borrow, rename = "cacheScope")]
    scope: Option<&'a RawValue>,
}

/// The caching hints that every cacheable result has (MCP 2026-07-28, caching): the server's, within our bounds.
fn hint(
    permit: &Permit,
    message: &Message,
    scope: Scope,
    changes: &mut Changes,
) -> Result<(), Refusal> {
    let result = message.result().unwrap_or_default();
    let hints: Hints<'_> =
        serde_json::from_str(result).map_err(|error| malformed(permit, error.to_string()))?;
    let ttl = hints.ttl.and_then(|ttl| ttl.get().parse::<u64>().ok());
    let ttl = ttl.unwrap_or_default().min(MAX_TTL).to_string();
    let public = r#""public""#;
    let shared = scope == Scope::Servers && hints.scope.map(RawValue::get) == Some(public);
    changes.set(message, "ttlMs", hints.ttl.map(RawValue::get), &ttl);
    let scope = if shared { public } else { r#""private""# };
    let found = hints.scope.map(RawValue::get);
    changes.set(message, "cacheScope", found, scope);
    Ok(())
}

/// What is said of an answer that is none, for the reason given.
pub(in crate::gateway) fn malformed(permit: &Permit, reason: impl Into<String>) -> Refusal {
    let server = permit.server().name.clone();
    let reason = reason.into();
    Error::Malformed { server, reason }.into()
}
