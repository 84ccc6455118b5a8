//! What one event of a server's stream brings.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;

use super::Message;
use crate::mcp::News;

/// What a server says on a stream.
pub enum Item {
    /// A notification of a kind that is relayed.
    Notification {
        /// What it tells.
        news: News,
        /// The JSON text.
        text: Bytes,
    },
    /// More progress behind such a notification: events that go on as they stand, since they are written as ours.
    Progress(Bytes),
    /// A request of the server's own.
    Request(Box<Asking>),
    /// The answer, after which nothing may come.
    Answer(Box<Message>),
}

impl Item {
    /// The bytes of its event, more or less.
    pub(super) fn size(&self) -> usize {
        const FRAME: usize = 64;
        match self {
            Self::Progress(events) => events.len(),
            Self::Notification { text, .. } => text.len() + FRAME,
            Self::Request(asking) => asking.text.len() + FRAME,
            Self::Answer(message) => message.size() + FRAME,
        }
    }
}

/// A request of a server.
pub struct Asking {
    /// Its method.
    pub method: Box<str>,
    /// The JSON text of its id.
    pub id: Box<str>,
    /// The JSON text.
    pub text: Bytes,
}

/// One event of a stream. Streams bring many of them, so what few have is boxed.
pub struct Event {
    /// What it says about coming back to the stream.
    pub mark: Option<Box<Mark>>,
    /// The message in it; an event without one only says the above.
    pub item: Option<Item>,
}

/// What an event says beside its message; never anything in the modern era.
pub struct Mark {
    /// Where the stream can be resumed after it.
    pub id: Option<HeaderValue>,
    /// How long the server wants clients to wait before they come back, where it says something new.
    pub retry: Option<Duration>,
}
