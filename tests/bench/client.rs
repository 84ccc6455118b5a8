//! One connection of the load: opens a session where the era has them, calls, and checks each answer.

use std::fs;
use std::io::{Error, Result, Write as _};
use std::ops::Range;
use std::path::PathBuf;

use clap::Args;
use memchr::memmem::{self, Finder};

use crate::Era;
use crate::tools::{Tool, now};
use crate::wire::{Body, Head, Wire};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const MODERN_META: &str = r#","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}"#;
const PROGRESS: &[u8] = br#""method":"notifications/progress""#;
const SENT: &[u8] = br#""message":""#;
/// All ids have as many digits as this one, so that requests differ in nothing else.
const FIRST_ID: u64 = 100_000_000;

/// Where the load goes.
#[derive(Args)]
pub(crate) struct Endpoint {
    /// Port on 127.0.0.1.
    #[arg(long)]
    pub(crate) port: u16,
    /// Path of the endpoint.
    #[arg(long)]
    path: String,
    #[arg(long, value_enum)]
    era: Era,
    /// A file of agent keys, a line each; connection N uses the Nth, round and round.
    #[arg(long)]
    keys: Option<PathBuf>,
}

impl Endpoint {
    /// Clients on so many connections, each ready to call.
    pub(crate) async fn clients(&self, connections: usize) -> Result<Vec<Client>> {
        let keys = match &self.keys {
            Some(file) => fs::read_to_string(file)?,
            None => String::new(),
        };
        let mut keys = keys.lines().cycle();
        let mut clients = Vec::new();
        for number in 0..connections {
            clients.push(Client::open(self, keys.next(), number).await?);
        }
        Ok(clients)
    }
}

/// One connection, ready to call.
pub(crate) struct Client {
    wire: Wire,
    path: String,
    /// Fields that all requests have.
    fields: String,
    era: Era,
    body: Vec<u8>,
}

impl Client {
    /// Each is a conversation of its own: in the older era because it is a session, in the other by name.
    async fn open(endpoint: &Endpoint, key: Option<&str>, number: usize) -> Result<Self> {
        let mut fields = format!("host: 127.0.0.1:{}\r\n", endpoint.port);
        if let Some(key) = key {
            fields += &format!("authorization: Bearer {key}\r\n");
        }
        let mut client = Self {
            wire: Wire::connect(endpoint.port).await?,
            path: endpoint.path.clone(),
            fields,
            era: endpoint.era,
            body: Vec::new(),
        };
        match client.era {
            Era::Modern => {
                client.fields += &format!(
                    "mcp-protocol-version: 2026-07-28\r\ntollgate-conversation: bench-{number}\r\n"
                );
            }
            Era::Legacy => client.open_session().await?,
        }
        Ok(client)
    }

    async fn open_session(&mut self) -> Result<()> {
        let head = self.exchange("POST", INITIALIZE).await?;
        let Some(session) = head.field("mcp-session-id") else {
            return Err(self.unexpected(&head));
        };
        self.fields +=
            &format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
        let head = self.exchange("POST", INITIALIZED).await?;
        match head.starts_with("HTTP/1.1 202 ") {
            true => Ok(()),
            false => Err(self.unexpected(&head)),
        }
    }

    /// Ends the session, if there is one.
    pub(crate) async fn close(mut self) -> Result<()> {
        if self.era == Era::Legacy {
            self.exchange("DELETE", "").await?;
        }
        Ok(())
    }

    /// Opens the session's stream of what the server says unasked, on a connection of its own.
    pub(crate) async fn listen(&self, port: u16) -> Result<Wire> {
        let mut wire = Wire::connect(port).await?;
        let (path, fields) = (&self.path, &self.fields);
        let request = format!("GET {path} HTTP/1.1\r\n{fields}accept: text/event-stream\r\n\r\n");
        wire.write(request.as_bytes()).await?;
        let head = ended_early(wire.head().await?)?;
        match head.field("content-type") {
            Some("text/event-stream") => Ok(wire),
            _ => Err(self.unexpected(&head)),
        }
    }

    async fn exchange(&mut self, method: &str, body: &str) -> Result<Head> {
        let request = self.request(method, "", body);
        self.wire.write(&request).await?;
        self.answer(&mut Vec::new()).await
    }

    fn request(&self, method: &str, more: &str, body: &str) -> Vec<u8> {
        let (path, fields, size) = (&self.path, &self.fields, body.len());
        format!(
            "{method} {path} HTTP/1.1\r\n{fields}{more}content-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {size}\r\n\r\n{body}"
        )
        .into()
    }

    /// Reads a whole response into `self.body`, and notes for each event that says when it was sent how long it took.
    async fn answer(&mut self, lags: &mut Vec<u64>) -> Result<Head> {
        let head = ended_early(self.wire.head().await?)?;
        let mut body = head.body();
        self.body.clear();
        let mut seen = 0;
        while self.wire.piece(&mut body, &mut self.body).await? {
            if matches!(body, Body::Chunked) {
                note_lags(&self.body[seen..], lags);
                seen = self.body.len();
            }
        }
        Ok(head)
    }

    /// Calls and reads until the first event has come; then the connection is gone.
    pub(crate) async fn abandon(mut self, tool: Tool) -> Result<()> {
        let call = Call::new(&self, tool);
        self.wire.write(&call.request).await?;
        let head = ended_early(self.wire.head().await?)?;
        let mut body = head.body();
        self.wire.piece(&mut body, &mut self.body).await?;
        match memmem::find(&self.body, PROGRESS) {
            Some(_) => Ok(()),
            None => Err(self.unexpected(&head)),
        }
    }

    /// Makes `call` once more, with the next id, and checks what comes back.
    pub(crate) async fn call(&mut self, call: &mut Call, lags: &mut Vec<u64>) -> Result<()> {
        call.count_up();
        self.wire.write(&call.request).await?;
        let head = self.answer(lags).await?;
        match head.starts_with("HTTP/1.1 200 ") && call.is_answered_by(&self.body) {
            true => Ok(()),
            false => Err(self.unexpected(&head)),
        }
    }

    fn unexpected(&self, head: &Head) -> Error {
        let body = String::from_utf8_lossy(&self.body);
        let body: String = body.chars().take(1000).collect();
        Error::other(format!(
            "not what was asked for: {}: {body}",
            head.start_line()
        ))
    }
}

fn ended_early(head: Option<Head>) -> Result<Head> {
    head.ok_or_else(|| Error::other("the connection ended before the answer"))
}

fn note_lags(piece: &[u8], lags: &mut Vec<u64>) {
    let now = now();
    for at in memmem::find_iter(piece, SENT) {
        let digits = piece[at + SENT.len()..].split(|byte| *byte == b'"').next();
        let sent = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        lags.extend(sent.map(|sent: u64| now.saturating_sub(sent)));
    }
}

/// A call that is made over and over: only the id changes.
pub(crate) struct Call {
    tool: Tool,
    request: Vec<u8>,
    /// Where the id is in the request.
    place: Range<usize>,
    /// What the answer to the last call says of its id.
    id: Vec<u8>,
    number: u64,
    content: Finder<'static>,
}

impl Call {
    pub(crate) fn new(client: &Client, tool: Tool) -> Self {
        let name = tool.name();
        let (more, meta) = match client.era {
            Era::Modern => (
                format!("mcp-method: tools/call\r\nmcp-name: {name}\r\n"),
                MODERN_META,
            ),
            Era::Legacy => (String::new(), ""),
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/call","params":{{"name":"{name}","arguments":{{"text":"hello"}},"_meta":{{"progressToken":"bench"{meta}}}}}}}"#
        );
        let request = client.request("POST", &more, &body);
        let id = format!(r#""id":{FIRST_ID}"#).into_bytes();
        let end = memmem::find(&request, &id).expect("the id was just written") + id.len();
        Self {
            tool,
            request,
            place: end - FIRST_ID.to_string().len()..end,
            id,
            number: FIRST_ID,
            content: Finder::new(tool.content()),
        }
    }

    fn count_up(&mut self) {
        self.number += 1;
        self.id.clear();
        // Writing to memory cannot fail.
        let _ = write!(self.id, r#""id":{}"#, self.number);
        let digits = &self.id[self.id.len() - self.place.len()..];
        self.request[self.place.clone()].copy_from_slice(digits);
    }

    /// Whether `body` is the answer to this very call, with its whole result and every event.
    fn is_answered_by(&self, body: &[u8]) -> bool {
        memmem::find(body, &self.id).is_some()
            && self.content.find(body).is_some()
            && memmem::find_iter(body, PROGRESS).count() == self.tool.events()
    }
}
