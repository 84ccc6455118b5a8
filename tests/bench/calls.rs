//! The load: so many connections, each with one call at a time, for so long.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use memchr::memmem;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::{Era, cpu};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LEGACY_CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}"#;
const MODERN_CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}}}"#;

/// What to call, and for how long.
#[derive(Args)]
pub(crate) struct Plan {
    /// Port on 127.0.0.1.
    #[arg(long)]
    port: u16,
    /// Path of the endpoint.
    #[arg(long)]
    path: String,
    #[arg(long, value_enum)]
    era: Era,
    #[arg(long)]
    connections: usize,
    /// Seconds that are measured, after a fifth of that which is not.
    #[arg(long)]
    seconds: f64,
    /// A file of agent keys, a line each; connection N uses the Nth, round and round.
    #[arg(long)]
    keys: Option<PathBuf>,
    /// Processes whose processor time and memory are measured.
    #[arg(long, value_delimiter = ',')]
    watch: Vec<u32>,
}

/// When to begin to measure, and when to stop.
struct Window {
    begin: Instant,
    end: Instant,
}

/// Loads, and prints what it took as one line of JSON. Any call that fails ends the run.
pub(crate) async fn run(plan: Plan) -> Result<(), Box<dyn Error + Send + Sync>> {
    let keys = match &plan.keys {
        Some(file) => fs::read_to_string(file)?,
        None => String::new(),
    };
    let mut keys = keys.lines().cycle();
    let mut clients = Vec::new();
    for _ in 0..plan.connections {
        clients.push(Client::connect(&plan, keys.next()).await?);
    }
    let begin = Instant::now() + Duration::from_secs_f64(plan.seconds / 5.0);
    let end = begin + Duration::from_secs_f64(plan.seconds);
    let window = Arc::new(Window { begin, end });
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn(client.load(Arc::clone(&window)));
    }
    tokio::time::sleep_until(begin.into()).await;
    let before = cpu::microseconds(&plan.watch)?;
    let mut taken = Vec::new();
    while let Some(finished) = tasks.join_next().await {
        taken.extend(finished??);
    }
    let used = cpu::microseconds(&plan.watch)? - before;
    report(
        taken,
        used,
        begin.elapsed(),
        cpu::anonymous_kib(&plan.watch)?,
    )
}

fn report(
    mut taken: Vec<Duration>,
    used: u64,
    elapsed: Duration,
    anonymous_kib: u64,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    taken.sort_unstable();
    let calls = taken.len();
    let Some(&last) = taken.last() else {
        return Err("no call was answered in time".into());
    };
    let at = |percent: usize| taken.get(calls * percent / 100).unwrap_or(&last);
    let result = serde_json::json!({
        "calls": calls,
        "p50_us": at(50).as_secs_f64() * 1e6,
        "p99_us": at(99).as_secs_f64() * 1e6,
        "per_second": calls as f64 / elapsed.as_secs_f64(),
        "cpu_us": used as f64 / calls as f64,
        "anonymous_kib": anonymous_kib,
    });
    Ok(writeln!(std::io::stdout(), "{result}")?)
}

/// One connection, ready to call.
struct Client {
    sender: SendRequest<Full<Bytes>>,
    path: String,
    headers: HeaderMap,
    call: Bytes,
}

impl Client {
    /// Connects, and opens a session where the era has them.
    #[expect(
        clippy::disallowed_methods,
        reason = "the load comes from outside the product"
    )]
    async fn connect(plan: &Plan, key: Option<&str>) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let socket = TcpStream::connect(("127.0.0.1", plan.port)).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        tokio::spawn(connection);
        let mut headers = HeaderMap::new();
        let host = format!("127.0.0.1:{}", plan.port);
        headers.insert(HOST, HeaderValue::try_from(host)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = "application/json, text/event-stream";
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if let Some(key) = key {
            let value = HeaderValue::try_from(format!("Bearer {key}"))?;
            headers.insert(AUTHORIZATION, value);
        }
        let mut client = Self {
            sender,
            path: plan.path.clone(),
            headers,
            call: Bytes::new(),
        };
        match plan.era {
            Era::Modern => client.stateless(),
            Era::Legacy => client.open().await?,
        }
        Ok(client)
    }

    fn stateless(&mut self) {
        self.name_version("2026-07-28");
        for (name, value) in [("mcp-method", "tools/call"), ("mcp-name", "echo")] {
            self.headers.insert(name, HeaderValue::from_static(value));
        }
        self.call = Bytes::from_static(MODERN_CALL.as_bytes());
    }

    async fn open(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (status, headers, _) = self.post(Bytes::from_static(INITIALIZE.as_bytes())).await?;
        let Some(session) = headers.get("mcp-session-id").cloned() else {
            return Err(format!("initialize opened no session: {status}").into());
        };
        self.headers.insert("mcp-session-id", session);
        self.name_version("2025-11-25");
        let (status, ..) = self
            .post(Bytes::from_static(INITIALIZED.as_bytes()))
            .await?;
        if status != StatusCode::ACCEPTED {
            return Err(format!("notifications/initialized was answered {status}").into());
        }
        self.call = Bytes::from_static(LEGACY_CALL.as_bytes());
        Ok(())
    }

    fn name_version(&mut self, version: &'static str) {
        let version = HeaderValue::from_static(version);
        self.headers.insert("mcp-protocol-version", version);
    }

    /// Calls until the window ends; gives how long each call within it took.
    async fn load(
        mut self,
        window: Arc<Window>,
    ) -> Result<Vec<Duration>, Box<dyn Error + Send + Sync>> {
        let mut taken = Vec::new();
        let mut now = Instant::now();
        while now < window.end {
            let (status, _, body) = self.post(self.call.clone()).await?;
            let result = memmem::find(&body, br#""result""#).is_some();
            let failed = memmem::find(&body, br#""isError":true"#).is_some();
            if status != StatusCode::OK || !result || failed {
                let body = String::from_utf8_lossy(&body);
                return Err(format!("a call was answered {status}: {body}").into());
            }
            let begun = std::mem::replace(&mut now, Instant::now());
            if begun >= window.begin {
                taken.push(now - begun);
            }
        }
        Ok(taken)
    }

    async fn post(&mut self, body: Bytes) -> hyper::Result<(StatusCode, HeaderMap, Bytes)> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.parse().expect("the path is the same each time");
        *request.headers_mut() = self.headers.clone();
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        Ok((head.status, head.headers, body.collect().await?.to_bytes()))
    }
}
