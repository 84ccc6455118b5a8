//! An agent's side of HTTP/1.1: what is sent and what comes back, byte for byte.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tollgate::egress::Io;

/// Nothing that a test waits for takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What `waited` returns; a test that waits for ever fails instead.
pub(crate) async fn patiently<T>(waited: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, waited)
        .await
        .expect("nothing within a minute")
}

/// A request, as it will be written.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    verb: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ask {
    /// A POST of JSON that accepts both forms of an answer.
    pub(crate) fn post(path: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        let ask = Self {
            verb: "POST",
            path: path.into(),
            headers: Vec::new(),
            body: body.into(),
        };
        ask.with("Content-Type", "application/json")
            .with("Accept", "application/json, text/event-stream")
    }

    /// A request without a body.
    pub(crate) fn bare(verb: &'static str, path: impl Into<String>) -> Self {
        Self {
            verb,
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Adds a header, also beside one of the same name.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Takes a header away.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(found, _)| !found.eq_ignore_ascii_case(name));
        self
    }

    /// Puts a header in place of those of the same name.
    pub(crate) fn set(self, name: &str, value: &str) -> Self {
        self.without(name).with(name, value)
    }

    /// The bytes on the wire.
    pub(crate) fn bytes(&self, host: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {host}\r\n", self.verb, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.verb == "POST" {
            head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        let mut bytes = format!("{head}\r\n").into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// An answer that has come whole.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The body as JSON; of an event stream, its last event.
    pub(crate) fn json(&self) -> Value {
        let last = self.body.lines().rfind(|line| line.starts_with("data:"));
        let text = last.map_or(&*self.body, |line| &line["data:".len()..]);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// The value of a header in the text of a head.
pub(crate) fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

/// An answer that is still coming.
pub(crate) struct Exchange {
    stream: BufReader<Box<dyn Io>>,
    head: String,
    text: String,
    /// Whether the answer ended as it said it would.
    pub(crate) complete: bool,
}

impl Exchange {
    /// Writes `bytes` and reads the head of the answer; `None` where the connection ends without one.
    pub(crate) async fn begin(stream: Box<dyn Io>, bytes: &[u8]) -> Option<Self> {
        let mut exchange = Self::unanswered(stream, bytes).await;
        patiently(exchange.read_head()).await.then_some(exchange)
    }

    /// Reads `before` to its end, then asks again on the same connection.
    pub(crate) async fn again(mut before: Self, bytes: &[u8]) -> Option<Self> {
        while patiently(before.piece()).await {}
        before.head.clear();
        before.text.clear();
        before.complete = false;
        before.stream.write_all(bytes).await.ok()?;
        patiently(before.read_head()).await.then_some(before)
    }

    /// Writes `bytes` and reads nothing.
    pub(crate) async fn unanswered(stream: Box<dyn Io>, bytes: &[u8]) -> Self {
        let mut stream = BufReader::new(stream);
        // A server may refuse before it has read everything.
        drop(stream.write_all(bytes).await);
        drop(stream.flush().await);
        Self {
            stream,
            head: String::new(),
            text: String::new(),
            complete: false,
        }
    }

    /// The same once the head of its answer has come.
    pub(crate) async fn answered(mut self) -> Self {
        assert!(patiently(self.read_head()).await, "an answer");
        self
    }

    /// The status.
    pub(crate) fn status(&self) -> u16 {
        let status = self.head.split(' ').nth(1);
        status.unwrap().parse().unwrap()
    }

    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The data of the next event; `None` at the end of the stream.
    pub(crate) async fn event(&mut self) -> Option<String> {
        loop {
            let event = self.whole_event().await?;
            let data: Vec<&str> = event
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .collect();
            let data = data.join("\n").trim_start().to_owned();
            if !data.is_empty() {
                return Some(data);
            }
        }
    }

    /// The lines of the next event that is no comment; `None` at the end of the stream.
    pub(crate) async fn whole_event(&mut self) -> Option<String> {
        loop {
            let event = self.event_or_comment().await?;
            if event != ":" {
                return Some(event);
            }
        }
    }

    /// The lines of the next event, be it a comment; `None` at the end of the stream.
    pub(crate) async fn event_or_comment(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let event = event.to_owned();
                self.text = rest.to_owned();
                return Some(event);
            }
            if !patiently(self.piece()).await {
                return None;
            }
        }
    }

    /// The whole answer.
    pub(crate) async fn whole(mut self) -> Reply {
        while patiently(self.piece()).await {}
        Reply {
            status: self.status(),
            head: self.head,
            body: self.text,
        }
    }

    async fn read_head(&mut self) -> bool {
        loop {
            let before = self.head.len();
            match self.stream.read_line(&mut self.head).await {
                Ok(read) if read > 0 => {}
                _ => return false,
            }
            if &self.head[before..] == "\r\n" {
                return true;
            }
        }
    }

    /// Reads the next piece of the body; false at its end.
    async fn piece(&mut self) -> bool {
        if self.complete {
            return false;
        }
        let chunked = self.header("transfer-encoding").is_some();
        let length = match self.header("content-length") {
            Some(length) => length.parse().unwrap(),
            None if chunked => match self.chunk_size().await {
                Some(size) => size,
                None => return false,
            },
            None => 0,
        };
        let mut piece = vec![0; length];
        if self.stream.read_exact(&mut piece).await.is_err() {
            return false;
        }
        self.text.push_str(std::str::from_utf8(&piece).unwrap());
        let mut end = String::new();
        if chunked && self.stream.read_line(&mut end).await.is_err() {
            return false;
        }
        self.complete = !chunked || length == 0;
        !self.complete
    }

    async fn chunk_size(&mut self) -> Option<usize> {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.ok()?;
        usize::from_str_radix(line.trim(), 16).ok()
    }
}
