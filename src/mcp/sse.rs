//! Server-sent events (WHATWG HTML, section 9.2): an incremental parser that copies only what chunks cut in two,
//! and an encoder.

mod encoder;

use std::ops::Range;

use bytes::{Buf, BufMut, Bytes, BytesMut};

pub use self::encoder::{KEEP_ALIVE, encode, encode_id, encode_nothing, encode_retry, frame};

use crate::refusal::{Code, Refusal};

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// `event`; absent means `message`.
    pub name: Option<Bytes>,
    /// The `data` lines, joined by line feeds.
    pub data: Bytes,
    /// `id`, if this event set one; no part of a chunk.
    pub id: Option<Bytes>,
}

impl Event {
    /// Whether it is of the type that carries JSON-RPC.
    pub fn is_message(&self) -> bool {
        self.name
            .as_ref()
            .is_none_or(|name| name.is_empty() || name == MESSAGE)
    }
}

/// Turns the chunks of a body into events, whatever the chunks' borders.
#[derive(Debug)]
pub struct Parser {
    max: usize,
    chunk: Bytes,
    /// Where the part of the chunk begins that was not read.
    at: usize,
    /// The beginning of a line whose end has not come.
    carry: BytesMut,
    /// A carriage return ended the last line, so a line feed that comes next belongs to it.
    skip_feed: bool,
    at_start: bool,
    name: Option<Bytes>,
    id: Option<Bytes>,
    data: Option<Data>,
    size: usize,
    retry: Option<u64>,
}

/// The type of an event that carries JSON-RPC.
const MESSAGE: &[u8] = b"message";

/// A line: where it stands in the chunk, or what was put together of it.
enum Line {
    Here(Range<usize>),
    Joined(Bytes),
}

impl Line {
    fn of<'a>(&'a self, chunk: &'a Bytes) -> &'a [u8] {
        match self {
            Self::Here(place) => &chunk[place.clone()],
            Self::Joined(line) => line,
        }
    }

    /// Its bytes from `begin` on, to keep.
    fn slice(&self, chunk: &Bytes, begin: usize) -> Bytes {
        match self {
            Self::Here(place) => chunk.slice(place.start + begin..place.end),
            Self::Joined(line) => line.slice(begin..),
        }
    }

    fn skip(&mut self, bytes: usize) {
        match self {
            Self::Here(place) => place.start += bytes,
            Self::Joined(line) => line.advance(bytes),
        }
    }
}

/// An event that is all in the chunk: two line feeds follow its one line of data.
struct Plain {
    name: Option<&'static [u8]>,
    data: Range<usize>,
}

#[derive(Debug)]
enum Data {
    One(Bytes),
    Many(BytesMut),
}

impl Parser {
    /// A parser that refuses events, and single lines, of more than `max` bytes.
    pub fn new(max: usize) -> Self {
        Self {
            max,
            chunk: Bytes::new(),
            at: 0,
            carry: BytesMut::new(),
            skip_feed: false,
            at_start: true,
            name: None,
            id: None,
            data: None,
            size: 0,
            retry: None,
        }
    }

    /// Gives it the next chunk, once [`Parser::next_event`] has returned `None`.
    pub fn push(&mut self, chunk: Bytes) {
        let rest = &self.chunk[self.at..];
        self.chunk = if rest.is_empty() {
            chunk
        } else {
            [rest, &chunk].concat().into()
        };
        self.at = 0;
    }

    /// The next whole event; `None` asks for more bytes. An event that the stream's end cuts off never comes.
    ///
    /// # Errors
    /// [`Code::UpstreamEventTooLarge`]; the stream is of no use afterwards.
    pub fn next_event(&mut self) -> Result<Option<Event>, Refusal> {
        if let Some(event) = self.plain_event()? {
            return Ok(Some(event));
        }
        while let Some(line) = self.line()? {
            if line.of(&self.chunk).is_empty() {
                if let Some(event) = self.dispatch() {
                    return Ok(Some(event));
                }
            } else {
                self.field(&line)?;
            }
        }
        Ok(None)
    }

    /// Takes the events that come next, as long as each of them stands as [`encode`] writes it and `takes` says so of its
    /// data. Returns them as they stand.
    ///
    /// # Errors
    /// As [`Parser::next_event`].
    pub fn run(&mut self, takes: impl Fn(&[u8]) -> bool) -> Result<Bytes, Refusal> {
        let begin = self.at;
        while let Some(plain) = self.plain()?
            && plain.name.is_some()
            && takes(&self.chunk[plain.data.clone()])
        {
            self.at = plain.data.end + 2;
        }
        Ok(self.chunk.slice(begin..self.at))
    }

    fn plain_event(&mut self) -> Result<Option<Event>, Refusal> {
        let Some(Plain { name, data }) = self.plain()? else {
            return Ok(None);
        };
        self.at = data.end + 2;
        Ok(Some(Event {
            name: name.map(Bytes::from_static),
            data: self.chunk.slice(data),
            id: None,
        }))
    }

    /// The next event where it is as most are: one line of data, perhaps after its type, and all of it here.
    fn plain(&self) -> Result<Option<Plain>, Refusal> {
        const DATA: &[u8] = b"data: ";
        const TYPED: &[u8] = b"event: message\ndata: ";
        let begun = !self.carry.is_empty() || self.name.is_some() || self.id.is_some();
        if begun || self.data.is_some() || self.skip_feed || self.at_start {
            return Ok(None);
        }
        let rest = &self.chunk[self.at..];
        let (begin, name) = match rest {
            _ if rest.starts_with(DATA) => (DATA.len(), None),
            _ if rest.starts_with(TYPED) => (TYPED.len(), Some(MESSAGE)),
            _ => return Ok(None),
        };
        let Some(length) = memchr::memchr2(b'\r', b'\n', &rest[begin..]) else {
            return Ok(None);
        };
        if !rest[begin + length..].starts_with(b"\n\n") {
            return Ok(None);
        }
        self.fits(DATA.len() + length)?;
        self.fits(name.map_or(0, <[u8]>::len) + length + 1)?;
        let begin = self.at + begin;
        let data = begin..begin + length;
        Ok(Some(Plain { name, data }))
    }

    /// Bytes of the event that has begun and not ended.
    pub fn pending(&self) -> usize {
        self.size + self.carry.len()
    }

    /// The last `retry`, in milliseconds: how long a client waits before it connects again.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    fn line(&mut self) -> Result<Option<Line>, Refusal> {
        if self.skip_feed && self.at < self.chunk.len() {
            self.skip_feed = false;
            self.at += usize::from(self.chunk[self.at] == b'\n');
        }
        let rest = &self.chunk[self.at..];
        let length = memchr::memchr2(b'\r', b'\n', rest);
        let begun = self.carry.len();
        self.fits(begun + length.unwrap_or(rest.len()))?;
        let Some(length) = length else {
            self.carry.extend_from_slice(rest);
            self.let_go();
            return Ok(None);
        };
        let place = self.at..self.at + length;
        self.at = place.end + 1;
        self.skip_feed = self.chunk[place.end] == b'\r';
        let mut line = if begun == 0 {
            Line::Here(place)
        } else {
            self.carry.extend_from_slice(&self.chunk[place]);
            Line::Joined(self.carry.split().freeze())
        };
        if std::mem::take(&mut self.at_start)
            && line.of(&self.chunk).starts_with("\u{feff}".as_bytes())
        {
            line.skip(3);
        }
        Ok(Some(line))
    }

    /// Lets go of the chunk, of which everything was read: a few bytes of an event that goes on would keep all of it.
    fn let_go(&mut self) {
        self.chunk = Bytes::new();
        self.at = 0;
        if let Some(Data::One(line)) = &self.data {
            self.data = Some(Data::Many(BytesMut::from(&line[..])));
        }
    }

    fn field(&mut self, line: &Line) -> Result<(), Refusal> {
        let text = line.of(&self.chunk);
        let colon = text.iter().position(|byte| *byte == b':');
        let colon = colon.unwrap_or(text.len());
        let space = usize::from(text.get(colon + 1) == Some(&b' '));
        let begin = text.len().min(colon + 1 + space);
        let value = || line.slice(&self.chunk, begin);
        match &text[..colon] {
            b"data" => {
                let value = value();
                self.grow(value.len() + 1)?;
                self.data = Some(match self.data.take() {
                    None => Data::One(value),
                    Some(Data::One(first)) => {
                        let mut lines = BytesMut::from(first);
                        lines.put_u8(b'\n');
                        lines.put(value);
                        Data::Many(lines)
                    }
                    Some(Data::Many(mut lines)) => {
                        lines.put_u8(b'\n');
                        lines.put(value);
                        Data::Many(lines)
                    }
                });
            }
            b"event" => {
                // The usual name is not worth a share of the chunk.
                let name = match &text[begin..] {
                    MESSAGE => Bytes::from_static(MESSAGE),
                    other => Bytes::copy_from_slice(other),
                };
                self.grow(name.len())?;
                self.name = Some(name);
            }
            b"id" if !text[begin..].contains(&0) => {
                let id = Bytes::copy_from_slice(&text[begin..]);
                self.grow(id.len())?;
                self.id = Some(id);
            }
            b"retry" if text[begin..].iter().all(u8::is_ascii_digit) => {
                self.retry = std::str::from_utf8(&text[begin..])
                    .ok()
                    .and_then(|digits| digits.parse().ok())
                    .or(self.retry);
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the event; one without data is none.
    fn dispatch(&mut self) -> Option<Event> {
        self.size = 0;
        let (name, id) = (self.name.take(), self.id.take());
        let data = match self.data.take()? {
            Data::One(data) => data,
            Data::Many(lines) => lines.freeze(),
        };
        Some(Event { name, data, id })
    }

    fn grow(&mut self, by: usize) -> Result<(), Refusal> {
        self.size += by;
        self.fits(self.size)
    }

    fn fits(&self, size: usize) -> Result<(), Refusal> {
        if size <= self.max.saturating_add("data: ".len()) {
            return Ok(());
        }
        Err(Refusal::new(
            Code::UpstreamEventTooLarge,
            format!(
                "an event of the server's stream is larger than {} bytes",
                self.max
            ),
        ))
    }
}

#[cfg(test)]
mod tests;
