//! What an answer needs of its request, however much later it comes, and what of a modern answer is Tollgate's to say.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    mcp::{Era, Method},
    policy::Permit,
    refusal::Refusal,
    upstream::{Edit, Error, Message, ResultKind},
};

/// Policy may change at any moment, so nothing is kept longer than this, in milliseconds.
const MAX_TTL: u64 = 300_000;

/// Who may share a cached answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// As the server says: every caller gets the same.
    Servers,
    /// Only who asked: others may get something else, or nothing.
    Private,
}

/// A request whose answer is to come.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    /// The JSON text of its id; empty where it has none.
    pub(super) id: Bytes,
    /// Its era.
    pub(super) era: Era,
    /// What it asks for; `None` for notifications that mean nothing here, and for responses.
    pub(super) method: Option<Method>,
    /// Who may share the answer.
    pub(super) scope: Scope,
}

impl Asker {
    /// The JSON text of the id; `None` for a notification.
    pub(super) fn id_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.id)
            .ok()
            .filter(|id| !id.is_empty())
    }

    /// What changes in the answer: in the modern era its kind is named, and how long it may be kept is Tollgate's to
    /// say. Usually nothing.
    pub(super) fn edits(&self, permit: &Permit, message: &Message) -> Result<Vec<Edit>, Refusal> {
        let (Era::Modern, Some(kind)) = (self.era, message.result_kind()) else {
            return Ok(Vec::new());
        };
        let mut changes = Changes::default();
        match kind {
            ResultKind::Complete => {}
            ResultKind::Untold => changes.set(message, "resultType", None, r#""complete""#),
            ResultKind::InputRequired | ResultKind::Other => {
                let reason = "a kind of result that was not agreed on".to_owned();
                return Err(malformed(permit, reason));
            }
        }
        if self.method.is_some_and(Method::is_cacheable) {
            hint(permit, message, self.scope, &mut changes)?;
        }
        Ok(changes.into_edits(message))
    }
}

/// Members of a result that are replaced or added.
#[derive(Default)]
struct Changes {
    edits: Vec<Edit>,
    added: Vec<String>,
}

impl Changes {
    fn set(&mut self, message: &Message, name: &str, found: Option<&RawValue>, text: &str) {
        match found.map(RawValue::get) {
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

    fn into_edits(mut self, message: &Message) -> Vec<Edit> {
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
    changes.set(message, "ttlMs", hints.ttl, &ttl);
    let scope = if shared { public } else { r#""private""# };
    changes.set(message, "cacheScope", hints.scope, scope);
    Ok(())
}

fn malformed(permit: &Permit, reason: String) -> Refusal {
    let server = permit.server().name.clone();
    Error::Malformed { server, reason }.into()
}
