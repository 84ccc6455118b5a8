//! Proof that a request's evidence was judged.

use std::{ops::Deref, sync::Arc};

use http::HeaderMap;

use super::{Error, headers};
use crate::subject::Subject;

/// An authenticated subject. Made only by this room; demanded by `gateway`.
#[derive(Clone, Debug)]
pub struct Caller(Arc<Subject>);

impl Caller {
    pub(super) fn new(subject: Arc<Subject>) -> Self {
        Self(subject)
    }

    /// The plain facts, for records.
    pub fn subject(&self) -> &Arc<Subject> {
        &self.0
    }

    /// The same caller with the conversation and turn that a message's `_meta` names. They are the agent's word and
    /// widen nothing.
    #[must_use]
    pub fn in_conversation(self, conversation: Option<Arc<str>>, turn: Option<Arc<str>>) -> Self {
        if conversation == self.0.conversation && turn == self.0.turn {
            return self;
        }
        Self(Arc::new(Subject {
            conversation,
            turn,
            ..(*self.0).clone()
        }))
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
        &self.0
    }
}
