//! Server-sent events (WHATWG HTML, section 9.2): an incremental parser that copies only what chunks cut in two,
//! and an encoder.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::refusal::{Code, Refusal};

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// `event`; absent means `message`.
    pub name: Option<Bytes>,
    /// The `data` lines, joined by line feeds.
    pub data: Bytes,
    /// `id`, if this event set one.
    pub id: Option<Bytes>,
}

impl Event {
    /// Whether it is of the type that carries JSON-RPC.
    pub fn is_message(&self) -> bool {
        self.name
            .as_ref()
            .is_none_or(|name| name.is_empty() || name == "message")
    }
}

/// Turns the chunks of a body into events, whatever the chunks' borders.
#[derive(Debug)]
pub struct Parser {
    max: usize,
    chunk: Bytes,
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
        if self.chunk.is_empty() {
            self.chunk = chunk;
        } else {
            let mut joined = BytesMut::from(std::mem::take(&mut self.chunk));
            joined.extend_from_slice(&chunk);
            self.chunk = joined.freeze();
        }
    }

    /// The next whole event; `None` asks for more bytes. An event that the stream's end cuts off never comes.
    ///
    /// # Errors
    /// [`Code::UpstreamEventTooLarge`]; the stream is of no use afterwards.
    pub fn next_event(&mut self) -> Result<Option<Event>, Refusal> {
        while let Some(line) = self.line()? {
            if line.is_empty() {
                if let Some(event) = self.dispatch() {
                    return Ok(Some(event));
                }
            } else {
                self.field(&line)?;
            }
        }
        Ok(None)
    }

    /// Bytes of the event that has begun and not ended.
    pub fn pending(&self) -> usize {
        self.size + self.carry.len()
    }

    /// The last `retry`, in milliseconds: how long a client waits before it connects again.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    fn line(&mut self) -> Result<Option<Bytes>, Refusal> {
        if self.skip_feed && !self.chunk.is_empty() {
            self.skip_feed = false;
            if self.chunk[0] == b'\n' {
                self.chunk.advance(1);
            }
        }
        let Some(end) = memchr::memchr2(b'\r', b'\n', &self.chunk) else {
            self.fits(self.carry.len() + self.chunk.len())?;
            self.carry.extend_from_slice(&self.chunk);
            self.chunk.clear();
            return Ok(None);
        };
        self.fits(self.carry.len() + end)?;
        let mut line = self.chunk.split_to(end);
        self.skip_feed = self.chunk[0] == b'\r';
        self.chunk.advance(1);
        if !self.carry.is_empty() {
            self.carry.extend_from_slice(&line);
            line = self.carry.split().freeze();
        }
        if std::mem::take(&mut self.at_start) && line.starts_with("\u{feff}".as_bytes()) {
            line.advance(3);
        }
        Ok(Some(line))
    }

    fn field(&mut self, line: &Bytes) -> Result<(), Refusal> {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let mut value = line.slice(line.len().min(colon + 1)..);
        if value.first() == Some(&b' ') {
            value.advance(1);
        }
        match &line[..colon] {
            b"data" => {
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
                self.grow(value.len())?;
                self.name = Some(value);
            }
            b"id" if !value.contains(&0) => {
                self.grow(value.len())?;
                self.id = Some(value);
            }
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                self.retry = std::str::from_utf8(&value)
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

/// A comment, which keeps an idle stream open.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// Appends a `message` event with the data that `pieces` make together.
///
/// Line feeds in the data come back from a parser as they were; a carriage return, which JSON has only as white
/// space, comes back as a line feed.
pub fn encode(out: &mut BytesMut, pieces: &[&[u8]]) {
    const HEAD: &[u8] = b"event: message\ndata: ";
    out.reserve(HEAD.len() + pieces.iter().map(|piece| piece.len()).sum::<usize>() + 2);
    out.put_slice(HEAD);
    let mut after_return = false;
    for piece in pieces {
        let mut rest = *piece;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut after_return) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = memchr::memchr2(b'\r', b'\n', rest);
            out.put_slice(&rest[..end.unwrap_or(rest.len())]);
            let Some(end) = end else { break };
            out.put_slice(b"\ndata: ");
            after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
        }
    }
    out.put_slice(b"\n\n");
}

/// Appends the `id` of the event that follows, made of `pieces`, none of which has a line break.
pub fn encode_id(out: &mut BytesMut, pieces: &[&[u8]]) {
    out.put_slice(b"id: ");
    for piece in pieces {
        out.put_slice(piece);
    }
    out.put_u8(b'\n');
}

/// Appends `retry`, in milliseconds.
pub fn encode_retry(out: &mut BytesMut, retry: u128) {
    let mut buffer = itoa::Buffer::new();
    out.put_slice(b"retry: ");
    out.put_slice(buffer.format(retry).as_bytes());
    out.put_u8(b'\n');
}

/// Appends an event without data, whose id names a place to go on from (MCP 2025-11-25, transports).
pub fn encode_nothing(out: &mut BytesMut) {
    out.put_slice(b"data: \n\n");
}

/// One `message` event with this data.
pub fn frame(data: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    encode(&mut out, &[data]);
    out.freeze()
}

#[cfg(test)]
mod tests;
