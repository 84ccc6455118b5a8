//! A server's event stream, message by message.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::{HeaderValue, StatusCode};

use super::{
    Error, Event, Item, Message,
    event::{Asking, Mark},
    resume::{Way, event_id, retry},
};
use crate::{
    deadline::Deadline,
    egress,
    mcp::{Envelope, Kind, News, sse},
    policy::Permit,
};

/// Events that room is kept for between two chunks, at most.
const ROOM: usize = 32;

/// The messages of one stream, in order. In a session, a stream that ends before its answer is resumed.
pub struct Messages {
    permit: Permit,
    /// `None` while what is left of the stream is fetched.
    body: Option<Box<egress::Body>>,
    parser: sse::Parser,
    ready: VecDeque<Event>,
    awaited: Option<u64>,
    /// Whether event ids mean anything.
    named: bool,
    way: Option<Box<Way>>,
    /// The last `retry`, in milliseconds.
    retry: Option<u64>,
    /// Bytes of the answer, whatever streams they came on.
    came: usize,
    done: bool,
}

impl Messages {
    /// The stream that answers the request `id`.
    pub(super) fn answering(permit: &Permit, id: u64, body: Box<egress::Body>) -> Self {
        Self::new(permit, Some(id), Some(body))
    }

    /// What is left of the stream that answers the request `id`, by the `way` that leads there.
    pub(super) fn resumed(permit: &Permit, id: u64, way: Way) -> Self {
        Self::new(permit, Some(id), None).by(way)
    }

    /// The stream of what the server says unasked.
    pub(super) fn listening(permit: &Permit, body: Box<egress::Body>) -> Self {
        Self {
            named: true,
            ..Self::new(permit, None, Some(body))
        }
    }

    /// The same, resumed by `way` if it ends before the answer.
    pub(super) fn by(self, way: Way) -> Self {
        Self {
            named: true,
            way: Some(Box::new(way)),
            ..self
        }
    }

    fn new(permit: &Permit, awaited: Option<u64>, body: Option<Box<egress::Body>>) -> Self {
        Self {
            permit: permit.clone(),
            body,
            parser: parser(permit),
            ready: VecDeque::new(),
            awaited,
            named: false,
            way: None,
            retry: None,
            came: 0,
            done: false,
        }
    }

    /// When the call ends whose answer can be resumed; `None` where it cannot.
    pub fn resumable_until(&self) -> Option<Deadline> {
        self.way.as_ref().map(|way| way.deadline())
    }

    /// Waits until something has come; then [`Messages::take`] returns it. False at the end of the stream.
    /// Nothing is lost where the wait is given up.
    pub async fn wait(&mut self) -> Result<bool, Error> {
        while self.ready.is_empty() {
            if self.done {
                return Ok(false);
            }
            let Some(body) = &mut self.body else {
                self.body = Some(self.rest().await?);
                self.parser = parser(&self.permit);
                continue;
            };
            // What was taken and not attached is gone by now.
            body.release_to(self.parser.pending());
            match body.next_ready().await {
                Ok(Some(chunk)) => self.read(chunk)?,
                Ok(None) if self.awaited.is_none() => self.done = true,
                Ok(None) => self.broke(self.no_answer())?,
                Err(source @ egress::Error::Lost { .. }) => {
                    self.broke(self.egress_error(source))?
                }
                Err(source) => return Err(self.egress_error(source)),
            }
            if self.done {
                self.settle()?;
            }
        }
        Ok(true)
    }

    /// The stream ended before the answer: resumes it where there is a way.
    fn broke(&mut self, cause: Error) -> Result<(), Error> {
        let Some(way) = &mut self.way else {
            return Err(cause);
        };
        way.begin(cause)?;
        self.body = None;
        Ok(())
    }

    async fn rest(&mut self) -> Result<Box<egress::Body>, Error> {
        match &mut self.way {
            Some(way) => way.body().await,
            None => Err(self.no_answer()),
        }
    }

    /// Takes what has come behind the answer: usually the end, so that the connection can serve again.
    fn settle(&mut self) -> Result<(), Error> {
        let body = self.body.as_mut();
        match body.and_then(|body| body.next_ready().now_or_never()) {
            Some(Ok(Some(chunk))) => self.read(chunk),
            _ => Ok(()),
        }
    }

    /// The next event that has come already.
    pub fn take_event(&mut self) -> Option<Event> {
        let event = self.ready.pop_front();
        // A flood that was taken leaves no room behind that nobody counts.
        if self.ready.is_empty() && self.ready.capacity() > ROOM {
            self.ready = VecDeque::new();
        }
        event
    }

    /// The next message that has come already, whatever its event says beside it.
    pub fn take(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.take_event()?.item {
                return Some(item);
            }
        }
    }

    /// A buffer with room for the messages that have come, as events.
    pub fn buffer(&self) -> BytesMut {
        let items = self.ready.iter().filter_map(|event| event.item.as_ref());
        BytesMut::with_capacity(items.map(Item::size).sum())
    }

    /// What was made of the messages that were taken; it counts as they did, until it is dropped.
    pub fn attach(&mut self, made: Bytes) -> Bytes {
        match &mut self.body {
            Some(body) => body.attach(made, self.parser.pending()),
            None => made,
        }
    }

    /// The answer, where nothing that comes before it is of interest.
    pub(super) async fn only_answer(&mut self) -> Result<Message, Error> {
        while self.wait().await? {
            while let Some(item) = self.take() {
                if let Item::Answer(message) = item {
                    return Ok(match &mut self.body {
                        Some(body) => message.taken_from(body),
                        None => *message,
                    });
                }
            }
        }
        Err(self.no_answer())
    }

    fn read(&mut self, chunk: Bytes) -> Result<(), Error> {
        self.came = self.came.saturating_add(chunk.len());
        let limit = self.permit.server().limits.response_bytes;
        if self.way.is_some() && self.came > limit {
            let host = self.permit.server().endpoint.host().clone();
            return Err(self.egress_error(egress::Error::TooLarge { host, limit }));
        }
        let held = self.body.as_mut().map(|body| body.hold(chunk.len()));
        held.transpose()
            .map_err(|source| self.egress_error(source))?;
        self.parser.push(chunk);
        while let Some(event) = self.parser.next_event().map_err(|_| self.too_large())? {
            // An event without data names a place to go on from, and carries nothing.
            let says = event.is_message() && !event.data.is_empty();
            if let Some(way) = &mut self.way {
                way.note(event.id.as_ref(), says);
            }
            let id = event.id.filter(|_| self.named);
            let item = if says { self.item(event.data)? } else { None };
            let progresses =
                matches!(&item, Some(Item::Notification { news, .. }) if *news == News::Progress);
            self.accept(id.as_ref().and_then(event_id), item)?;
            if progresses {
                self.progress()?;
            }
        }
        // `retry` needs no event around it.
        self.accept(None, None)
    }

    /// Takes the progress that follows. It comes in runs, of which each event is only looked at.
    fn progress(&mut self) -> Result<(), Error> {
        let run = self
            .parser
            .run(|text| news(text) == Some(Some(News::Progress)));
        let run = run.map_err(|_| self.too_large())?;
        if run.is_empty() {
            return Ok(());
        }
        if let Some(way) = &mut self.way {
            way.note(None, true);
        }
        self.accept(None, Some(Item::Progress(run)))
    }

    /// The message in an event; `None` where it tells something that is not relayed.
    fn item(&self, text: Bytes) -> Result<Option<Item>, Error> {
        if let Some(news) = news(&text) {
            return Ok(news.map(|news| Item::Notification { news, text }));
        }
        let malformed = |reason: String| Error::Malformed {
            server: self.server(),
            reason,
        };
        let envelope = Envelope::upstream(&text)
            .map_err(|refusal| malformed(refusal.detail.unwrap_or(refusal.public)))?;
        Ok(Some(match (envelope.kind, self.awaited) {
            (Kind::Notification, _) => {
                let news = News::find(&envelope.method);
                drop(envelope);
                return Ok(news.map(|news| Item::Notification { news, text }));
            }
            (Kind::Request, _) => Item::Request(Box::new(Asking {
                method: (&*envelope.method).into(),
                id: envelope.id_text().unwrap_or("null").into(),
                text: text.clone(),
            })),
            (Kind::Response, Some(id)) => {
                let (permit, status) = (&self.permit, StatusCode::OK);
                let message = Message::from_envelope(permit, id, status, &envelope, &text)?;
                Item::Answer(Box::new(message))
            }
            (Kind::Response, None) => {
                return Err(Error::WrongId {
                    server: self.server(),
                });
            }
        }))
    }

    /// Takes what an event says; whatever message comes with the answer and after it makes the answer doubtful.
    fn accept(&mut self, id: Option<HeaderValue>, item: Option<Item>) -> Result<(), Error> {
        if self.done && item.is_some() {
            return Err(Error::ExtraAnswer {
                server: self.server(),
            });
        }
        self.done |= matches!(item, Some(Item::Answer(_)));
        let retry = self.new_retry();
        let marked = id.is_some() || retry.is_some();
        let mark = marked.then(|| Box::new(Mark { id, retry }));
        if mark.is_some() || item.is_some() {
            self.ready.push_back(Event { mark, item });
        }
        Ok(())
    }

    /// What the server says about coming back, the first time that it says so.
    fn new_retry(&mut self) -> Option<Duration> {
        let told = self.parser.retry().filter(|_| self.named);
        if told.is_none() || told == self.retry {
            return None;
        }
        self.retry = told;
        let wait = retry(told?);
        if let Some(way) = &mut self.way {
            way.wait_for(wait);
        }
        Some(wait)
    }

    fn egress_error(&self, source: egress::Error) -> Error {
        Error::Egress {
            server: self.server(),
            source,
            destination: None,
        }
    }

    fn no_answer(&self) -> Error {
        Error::NoAnswer {
            server: self.server(),
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

/// What a notification tells, if that is relayed; `None` for what may be another message.
fn news(text: &[u8]) -> Option<Option<News>> {
    Envelope::notice(text).map(|method| News::find(&method))
}

fn parser(permit: &Permit) -> sse::Parser {
    sse::Parser::new(permit.server().limits.response_bytes)
}
