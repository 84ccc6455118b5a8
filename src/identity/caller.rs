//! Proof that a request's evidence was judged.

use std::{ops::Deref, sync::Arc, time::SystemTime};

use super::{
    Error,
    headers::{self, Named},
};
use crate::subject::Subject;

/// An authenticated subject. Made only by this room; demanded by `gateway`.
#[derive(Clone, Debug)]
pub struct Caller {
    subject: Arc<Subject>,
    expires: Option<SystemTime>,
    /// SHA-256 of the key that was presented.
    key: Option<[u8; 32]>,
}

impl Caller {
    /// A caller whom no credential names.
    pub(super) fn local(subject: Arc<Subject>) -> Self {
        Self {
            subject,
            expires: None,
            key: None,
        }
    }

    /// A person behind a browser that is signed in until then.
    pub(super) fn browser(subject: Arc<Subject>, expires: SystemTime) -> Self {
        Self {
            expires: Some(expires),
            ..Self::local(subject)
        }
    }

    /// The holder of the key with this digest.
    pub(super) fn with_key(
        subject: Arc<Subject>,
        expires: Option<SystemTime>,
        key: [u8; 32],
    ) -> Self {
        Self {
            subject,
            expires,
            key: Some(key),
        }
    }

    /// The digest of the key that was presented.
    pub(super) fn key(&self) -> Option<&[u8; 32]> {
        self.key.as_ref()
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
    pub(super) fn named_by(self, named: Named<'_>) -> Result<Self, Error> {
        let conversation = named.text(headers::CONVERSATION)?;
        let turn = named.text(headers::TURN)?;
        Ok(self.in_conversation(conversation.map(Arc::from), turn.map(Arc::from)))
    }
}

impl Deref for Caller {
    type Target = Subject;

    fn deref(&self) -> &Subject {
        &self.subject
    }
}
