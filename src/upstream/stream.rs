//! A server's event stream, message by message.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::StatusCode;

use super::{Error, Message};
use crate::{
    egress,
    mcp::{Envelope, Kind, sse},
    policy::Permit,
};

/// What a server says on a stream.
pub enum Item {
    /// A notification.
    Notification {
        /// Its method.
        method: Box<str>,
        /// The JSON text.
        text: Bytes,
    },
    /// A request of the server's own.
    Request {
        /// Its method.
        method: Box<str>,
        /// The JSON text of its id.
        id: Box<str>,
        /// The JSON text.
        text: Bytes,
    },
    /// The answer, after which nothing may come.
    Answer(Message),
}

/// The messages of one stream, in order.
pub struct Messages {
    permit: Permit,
    body: egress::Body,
    parser: sse::Parser,
    ready: VecDeque<Item>,
    awaited: Option<u64>,
    done: bool,
}

impl Messages {
    /// The stream that answers the request `id`.
    pub(super) fn answering(permit: &Permit, id: u64, body: egress::Body) -> Self {
        Self::new(permit, Some(id), body)
    }

    /// The stream of what the server says unasked.
    pub(super) fn listening(permit: &Permit, body: egress::Body) -> Self {
        Self::new(permit, None, body)
    }

    fn new(permit: &Permit, awaited: Option<u64>, body: egress::Body) -> Self {
        Self {
            permit: permit.clone(),
            body,
            parser: sse::Parser::new(permit.server().limits.response_bytes),
            ready: VecDeque::new(),
            awaited,
            done: false,
        }
    }

    /// Waits until something has come; then [`Messages::take`] returns it. False at the end of the stream.
    /// Nothing is lost where the wait is given up.
    pub async fn wait(&mut self) -> Result<bool, Error> {
        while self.ready.is_empty() {
            if self.done {
                return Ok(false);
            }
            // What was taken and not attached is gone by now.
            self.body.release_to(self.parser.pending());
            let chunk = self
                .body
                .next_ready()
                .await
                .map_err(|source| self.egress_error(source))?;
            let Some(chunk) = chunk else {
                self.done = true;
                if self.awaited.is_some() {
                    return Err(Error::NoAnswer {
                        server: self.server(),
                    });
                }
                continue;
            };
            self.read(chunk)?;
            if self.done {
                self.settle()?;
            }
        }
        Ok(true)
    }

    /// Takes what has come behind the answer: usually the end, so that the connection can serve again.
    fn settle(&mut self) -> Result<(), Error> {
        match self.body.next_ready().now_or_never() {
            Some(Ok(Some(chunk))) => self.read(chunk),
            _ => Ok(()),
        }
    }

    /// The next message that has come already.
    pub fn take(&mut self) -> Option<Item> {
        self.ready.pop_front()
    }

    /// What was made of the messages that were taken; it counts as they did, until it is dropped.
    pub fn attach(&mut self, made: Bytes) -> Bytes {
        self.body.attach(made, self.parser.pending())
    }

    /// The answer, where nothing that comes before it is of interest.
    pub(super) async fn only_answer(&mut self) -> Result<Message, Error> {
        while self.wait().await? {
            while let Some(item) = self.take() {
                if let Item::Answer(message) = item {
                    return Ok(message.taken_from(&mut self.body));
                }
            }
        }
        Err(Error::NoAnswer {
            server: self.server(),
        })
    }

    fn read(&mut self, chunk: Bytes) -> Result<(), Error> {
        let held = self.body.hold(chunk.len());
        held.map_err(|source| self.egress_error(source))?;
        self.parser.push(chunk);
        while let Some(event) = self.parser.next_event().map_err(|_| self.too_large())? {
            // An event without data primes a stream that could be resumed, which is not offered.
            if event.is_message() && !event.data.is_empty() {
                let item = self.item(event.data)?;
                self.accept(item)?;
            }
        }
        Ok(())
    }

    fn item(&self, text: Bytes) -> Result<Item, Error> {
        let malformed = |reason: String| Error::Malformed {
            server: self.server(),
            reason,
        };
        let envelope = Envelope::upstream(&text)
            .map_err(|refusal| malformed(refusal.detail.unwrap_or(refusal.public)))?;
        Ok(match (envelope.kind, self.awaited) {
            (Kind::Notification, _) => {
                let method = (&*envelope.method).into();
                drop(envelope);
                Item::Notification { method, text }
            }
            (Kind::Request, _) => Item::Request {
                method: (&*envelope.method).into(),
                id: envelope.id_text().unwrap_or("null").into(),
                text: text.clone(),
            },
            (Kind::Response, Some(id)) => Item::Answer(Message::from_envelope(
                &self.permit,
                id,
                StatusCode::OK,
                &envelope,
                &text,
            )?),
            (Kind::Response, None) => {
                return Err(Error::WrongId {
                    server: self.server(),
                });
            }
        })
    }

    /// Takes an item; whatever comes with the answer and after it makes the answer doubtful.
    fn accept(&mut self, item: Item) -> Result<(), Error> {
        if self.done {
            return Err(Error::ExtraAnswer {
                server: self.server(),
            });
        }
        self.done = matches!(item, Item::Answer(_));
        self.ready.push_back(item);
        Ok(())
    }

    fn egress_error(&self, source: egress::Error) -> Error {
        Error::Egress {
            server: self.server(),
            source,
            destination: None,
        }
    }

    fn too_large(&self) -> Error {
        Error::EventTooLarge {
            server: self.server(),
            cap: self.permit.server().limits.response_bytes,
        }
    }

    fn server(&self) -> Arc<str> {
        self.permit.server().name.clone()
    }
}
