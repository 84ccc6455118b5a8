//! A server on loopback that says exactly the bytes a test wants.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;
use tollgate::egress::Io;

/// Accepts connections and hands each to the test's script.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Log>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Log {
    connections: usize,
    names: Vec<Option<String>>,
    requests: Vec<String>,
}

/// One accepted connection.
pub(crate) struct Connection {
    stream: BufReader<Box<dyn Io>>,
    log: Arc<Mutex<Log>>,
}

impl Upstream {
    /// Plain HTTP.
    pub(crate) async fn plain<F>(script: impl Fn(Connection) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::start(None, script).await
    }

    /// HTTPS.
    pub(crate) async fn tls<F>(
        acceptor: TlsAcceptor,
        script: impl Fn(Connection) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::start(Some(acceptor), script).await
    }

    /// Answers every request on every connection with `answer`.
    pub(crate) async fn always(answer: impl Into<Vec<u8>>) -> Self {
        let answer = Arc::new(answer.into());
        Self::plain(move |mut connection| {
            let answer = answer.clone();
            async move {
                while connection.request().await.is_some() {
                    connection.write(&answer).await;
                }
            }
        })
        .await
    }

    async fn start<F>(
        acceptor: Option<TlsAcceptor>,
        script: impl Fn(Connection) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::<Mutex<Log>>::default();
        let shared = log.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                shared.lock().unwrap().connections += 1;
                let stream: Box<dyn Io> = match &acceptor {
                    None => Box::new(stream),
                    Some(acceptor) => {
                        let Ok(stream) = acceptor.accept(stream).await else {
                            continue;
                        };
                        let name = stream.get_ref().1.server_name().map(str::to_owned);
                        shared.lock().unwrap().names.push(name);
                        Box::new(stream)
                    }
                };
                let stream = BufReader::new(stream);
                tokio::spawn(script(Connection {
                    stream,
                    log: shared.clone(),
                }));
            }
        });
        Self { address, log, task }
    }

    /// How many connections were accepted.
    pub(crate) fn connections(&self) -> usize {
        self.log.lock().unwrap().connections
    }

    /// The name that each TLS client sent.
    pub(crate) fn names(&self) -> Vec<Option<String>> {
        self.log.lock().unwrap().names.clone()
    }

    /// Heads and bodies of all requests.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.log.lock().unwrap().requests.clone()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Reads one request; `None` once the client has closed.
    pub(crate) async fn request(&mut self) -> Option<String> {
        let (mut text, length) = self.head().await?;
        text.push_str(&self.body(length).await?);
        self.log.lock().unwrap().requests.push(text.clone());
        Some(text)
    }

    /// Reads the head of one request, and how long its body is.
    pub(crate) async fn head(&mut self) -> Option<(String, usize)> {
        let mut text = String::new();
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            text.push_str(&line);
            if line == "\r\n" {
                return Some((text, length));
            }
        }
    }

    /// Reads the body of a request.
    pub(crate) async fn body(&mut self, length: usize) -> Option<String> {
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.ok()?;
        Some(String::from_utf8(body).unwrap())
    }

    /// Says `bytes`; a client that has gone is no fault.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes).await;
        let _ = self.stream.get_mut().flush().await;
    }

    /// Returns once the client has closed.
    pub(crate) async fn closed(&mut self) {
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest).await;
    }

    /// Says nothing more and keeps the connection open.
    pub(crate) async fn hang(mut self) {
        self.closed().await;
    }
}
