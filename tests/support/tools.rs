//! A tool server on loopback that does, request by request, what a test says, and remembers what it was sent.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::client::{header, patiently};

/// What it offers, unless a test says otherwise.
pub(crate) const LIST: &str = concat!(
    r#"{"tools":[{"name":"get_weather","inputSchema":{"type":"object"},"x-odd":1.0},"#,
    r#"{"name":"get_fault","inputSchema":{"type":"object"}},"#,
    r#"{"name":"send_mail","inputSchema":{"type":"object"}},"#,
    r#"{"name":"delete_all","inputSchema":{"type":"object"}},"#,
    r#"{"name":"get_hidden","inputSchema":{"type":"object"}}]}"#
);

/// Something that one side waits for and the other opens.
#[derive(Clone, Debug)]
pub(crate) struct Latch(Arc<Semaphore>);

impl Latch {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets one waiter through.
    pub(crate) fn open(&self) {
        self.0.add_permits(1);
    }

    /// Whether a waiter would pass now.
    pub(crate) fn is_open(&self) -> bool {
        self.0.available_permits() > 0
    }

    pub(crate) async fn wait(&self) {
        patiently(self.0.acquire()).await.unwrap().forget();
    }
}

/// One thing that the server does.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Writes these bytes; `$ID` becomes the request's id.
    Say(Vec<u8>),
    /// Writes this text as one chunk; `$ID` becomes the request's id.
    Chunk(String),
    /// Waits for the test.
    Wait(Latch),
    /// Says nothing for so long, in a test that moves its time.
    Silence(Duration),
    /// Tells the test.
    Tell(Latch),
    /// Reads until the peer closes, then tells the test.
    Closed(Latch),
    /// Says nothing more until the peer closes.
    Hang,
    /// Closes in order.
    Close,
    /// Closes with a reset.
    Reset,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) text: String,
    pub(crate) json: Value,
}

impl Seen {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The JSON-RPC method; the HTTP method where there is no message.
    pub(crate) fn method(&self) -> &str {
        let verb = self.head.split(' ').next().unwrap_or_default();
        self.json["method"].as_str().unwrap_or(verb)
    }

    /// The tool that is called.
    pub(crate) fn tool(&self) -> &str {
        self.json["params"]["name"].as_str().unwrap_or_default()
    }

    pub(crate) fn modern(&self) -> bool {
        self.header("mcp-protocol-version") == Some("2026-07-28")
    }
}

type Script = dyn Fn(&Seen) -> Option<Vec<Step>> + Send + Sync;

struct Shared {
    script: Box<Script>,
    seen: Mutex<Vec<Seen>>,
    sessions: Mutex<Vec<String>>,
    opened: AtomicUsize,
    connections: AtomicUsize,
    open: AtomicUsize,
}

/// The server.
pub(crate) struct Tools {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Tools {
    /// Does what `script` says, and where it says nothing, what a sound server of both eras does.
    pub(crate) async fn start(
        script: impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::serve(listener, None, script)
    }

    /// A sound server where another was.
    pub(crate) async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        Self::serve(listener, None, |_| None)
    }

    /// The same over TLS.
    pub(crate) async fn tls(acceptor: TlsAcceptor) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::serve(listener, Some(acceptor), |_| None)
    }

    fn serve(
        listener: TcpListener,
        acceptor: Option<TlsAcceptor>,
        script: impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Box::new(script),
            seen: Mutex::default(),
            sessions: Mutex::default(),
            opened: AtomicUsize::default(),
            connections: AtomicUsize::default(),
            open: AtomicUsize::default(),
        });
        let task = tokio::spawn(accept(listener, acceptor, shared.clone()));
        Self {
            address,
            shared,
            task,
        }
    }

    /// Every request so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Those of one method.
    pub(crate) fn of(&self, method: &str) -> Vec<Seen> {
        let mut seen = self.seen();
        seen.retain(|seen| seen.method() == method);
        seen
    }

    /// Connections accepted so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Connections that are open now.
    pub(crate) fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// Forgets every session, as a server does that was restarted.
    pub(crate) fn forget_sessions(&self) {
        self.shared.sessions.lock().unwrap().clear();
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let mut tasks = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (acceptor, shared) = (acceptor.clone(), shared.clone());
        tasks.spawn(async move {
            let stream = match acceptor {
                None => Stream::Plain(stream),
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => Stream::Tls(Box::new(stream)),
                    Err(_) => return,
                },
            };
            Connection::new(stream, shared).serve().await;
        });
        while tasks.try_join_next().is_some() {}
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

struct Connection {
    stream: BufReader<Box<dyn tollgate::egress::Io>>,
    reset: Option<std::os::fd::OwnedFd>,
    shared: Arc<Shared>,
}

impl Connection {
    fn new(stream: Stream, shared: Arc<Shared>) -> Self {
        shared.connections.fetch_add(1, Ordering::SeqCst);
        shared.open.fetch_add(1, Ordering::SeqCst);
        let (stream, reset): (Box<dyn tollgate::egress::Io>, _) = match stream {
            Stream::Plain(stream) => {
                let fd = std::os::fd::AsFd::as_fd(&stream).try_clone_to_owned();
                (Box::new(stream), fd.ok())
            }
            Stream::Tls(stream) => (stream, None),
        };
        Self {
            stream: BufReader::new(stream),
            reset,
            shared,
        }
    }

    async fn serve(mut self) {
        while let Some(seen) = self.request().await {
            self.shared.seen.lock().unwrap().push(seen.clone());
            let steps = (self.shared.script)(&seen);
            let steps = steps.unwrap_or_else(|| super::sound::answer(&seen, &*self.shared));
            for step in steps {
                if !self.take(step, &seen).await {
                    return;
                }
            }
        }
    }

    async fn take(&mut self, step: Step, seen: &Seen) -> bool {
        match step {
            Step::Say(bytes) => return self.say(&fill(&bytes, seen)).await,
            Step::Chunk(text) => {
                let text = fill(text.as_bytes(), seen);
                let mut chunk = format!("{:x}\r\n", text.len()).into_bytes();
                chunk.extend_from_slice(&text);
                chunk.extend_from_slice(b"\r\n");
                return self.say(&chunk).await;
            }
            Step::Wait(latch) => latch.wait().await,
            Step::Silence(length) => tokio::time::sleep(length).await,
            Step::Tell(latch) => latch.open(),
            Step::Closed(latch) => {
                self.closed().await;
                latch.open();
                return false;
            }
            Step::Hang => {
                self.closed().await;
                return false;
            }
            Step::Close => return false,
            Step::Reset => {
                let fd = self.reset.as_ref().unwrap();
                socket2::SockRef::from(fd)
                    .set_linger(Some(Duration::ZERO))
                    .unwrap();
                return false;
            }
        }
        true
    }

    async fn say(&mut self, bytes: &[u8]) -> bool {
        let stream = self.stream.get_mut();
        stream.write_all(bytes).await.is_ok() && stream.flush().await.is_ok()
    }

    async fn closed(&mut self) {
        drop(self.stream.read_to_end(&mut Vec::new()).await);
    }

    async fn request(&mut self) -> Option<Seen> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.ok()?;
        let text = String::from_utf8(body).unwrap();
        Some(Seen {
            json: serde_json::from_str(&text).unwrap_or_default(),
            head,
            text,
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl super::sound::Sessions for Shared {
    fn open(&self) -> String {
        let id = format!("up-{}", self.opened.fetch_add(1, Ordering::SeqCst) + 1);
        self.sessions.lock().unwrap().push(id.clone());
        id
    }

    fn knows(&self, id: &str) -> bool {
        self.sessions.lock().unwrap().iter().any(|open| open == id)
    }

    fn end(&self, id: &str) {
        self.sessions.lock().unwrap().retain(|open| open != id);
    }
}

/// `bytes` with every `$ID` replaced.
fn fill(bytes: &[u8], seen: &Seen) -> Vec<u8> {
    let id = seen.json["id"].to_string();
    let mut out = Vec::with_capacity(bytes.len() + 16);
    let mut rest = bytes;
    while let Some(at) = memchr::memmem::find(rest, b"$ID") {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(id.as_bytes());
        rest = &rest[at + 3..];
    }
    out.extend_from_slice(rest);
    out
}
