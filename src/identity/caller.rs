//! Proof that a request's evidence was judged.

use std::{ops::Deref, sync::Arc, time::SystemTime};

use http::HeaderMap;

use super::{Error, headers};
use crate::subject::Subject;

/// An authenticated subject. Made only by this room; demanded by `gateway`.
#[derive(Clone, Debug)]
pub struct Caller {
    subject: Arc<Subject>,
    expires: Option<SystemTime>,
}

impl Caller {
    pub(super) fn new(subject: Arc<Subject>, expires: Option<SystemTime>) -> Self {
        Self { subject, expires }
    }

    /// When the evidence stops to hold; what lasts longer than a request ends then.
    pub fn expires(&self) -> Option<SystemTime> {
        self.expires
    }

    /// The plain facts, for records.
    pub fn subject(&self) -> &Arc<Subject> {
        &self.subject
    }

    /// The same caller with the conversation and turn that a message's `_meta` names. They are the agent's word and
    /// widen nothing.
    #[must_use]
    pub fn in_conversation(self, conversation: Option<Arc<str>>, turn: Option<Arc<str>>) -> Self {
        if conversation == self.subject.conversation && turn == self.subject.turn {
            return self;
        }
        let subject = Arc::new(Subject {
            conversation,
            turn,
            ..(*self.subject).clone()
        });
        Self { subject, ..self }
    }

    /// Takes conversation and turn from `Tollgate-Conversation` and `Tollgate-Turn`.
    pub(super) fn named_by(self, headers: &HeaderMap) -> Result<Self, Error> {
        let conversation = headers::text(headers, headers::CONVERSATION)?;
        let turn = headers::text(headers, headers::TURN)?;
        Ok(self.in_conversation(conversation.map(Arc::from), turn.map(Arc::from)))
    }
}

impl Deref for Caller {
    type Target = Subject;

    fn deref(&self) -> &Subject {
        &self.subject
    }
}
