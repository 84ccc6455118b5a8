//! A server's response is the same however it arrives, and what follows it on its connection is nobody's answer.
#![no_main]

use std::{
    collections::HashMap,
    io,
    pin::Pin,
    sync::{Arc, LazyLock, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode, header};
use libfuzzer_sys::fuzz_target;
use rustls::RootCertStore;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    runtime::{Builder, Runtime},
};
use tollgate::{
    address::{JudgedAddr, Name, Target},
    deadline::Deadline,
    egress::{
        Answer, Dial, Effect, Egress, Error, FieldLines, Io, Outbound, Resolve, ResolveError, Tls,
    },
    memory::Memory,
    policy::{
        Access, Endpoint, Era, Mark, Permit, Pin as Pins, Purpose, ReadOnly, Relay, Server,
        ServerLimits, Snapshot, Trust, decide_leg,
    },
    telemetry::Metrics,
};
use tollgate_fuzz::cut;

/// The most bytes of a body.
const MOST: usize = 8 * 1024;

/// What the second connection answers.
const SECOND: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fuzz_target!(|input: &[u8]| {
    let Some((document, pieces)) = cut(input) else {
        return;
    };
    let whole = fetch(vec![document]);
    assert_eq!(fetch(pieces), whole);
    assert_eq!(fetch(document.chunks(1).collect()), whole);
    if let Ok(response) = whole {
        check(&response, document);
    }
});

#[derive(Debug, PartialEq, Eq)]
struct Response {
    status: StatusCode,
    fields: String,
    length: Option<Vec<u8>>,
    body: Result<Bytes, String>,
}

fn check(response: &Response, document: &[u8]) {
    let status = response.status;
    assert!(!status.is_informational());
    assert!(!status.is_redirection() || status == StatusCode::NOT_MODIFIED);
    let Ok(body) = &response.body else {
        return;
    };
    assert!(body.len() <= MOST);
    let text = document.to_ascii_lowercase();
    let mentions = |word: &[u8]| text.windows(word.len()).any(|found| found == word);
    let has_body = status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED;
    if mentions(b"transfer-encoding") || mentions(b"content-encoding") || !has_body {
        return;
    }
    // Without codings, what is told is what stands there.
    assert!(body.is_empty() || document.windows(body.len()).any(|part| part == body));
    if let Some(length) = &response.length {
        let digits = length
            .split(|byte| *byte == b',')
            .next()
            .unwrap_or_default();
        let digits = std::str::from_utf8(digits).expect("digits").trim();
        assert_eq!(digits.parse(), Ok(body.len()));
    }
}

/// What all runs share.
struct World {
    runtime: Runtime,
    permit: Permit,
    tls: Tls,
    metrics: Arc<Metrics>,
}

impl World {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build();
        Self {
            runtime: runtime.expect("a runtime"),
            permit: permit(),
            tls: Tls::with_roots(RootCertStore::empty()),
            metrics: Arc::new(Metrics::new()),
        }
    }
}

/// What comes of a request whose response arrives in `pieces`. The next one must not see anything of them.
fn fetch(pieces: Vec<&[u8]>) -> Result<Response, String> {
    static WORLD: LazyLock<World> = LazyLock::new(World::new);
    let World {
        runtime,
        permit,
        tls,
        metrics,
    } = &*WORLD;
    let pieces = pieces.iter().rev().map(|piece| piece.to_vec()).collect();
    let dialer = Arc::new(Dialer(Mutex::new(vec![vec![SECOND.to_vec()], pieces])));
    let memory = Memory::new(Egress::ANSWERS);
    let egress = Egress::new(
        Arc::new(Nobody),
        dialer,
        tls.clone(),
        memory,
        metrics.clone(),
    );
    runtime.block_on(async {
        let first = send(&egress, permit).await;
        let second = send(&egress, permit).await.expect("another response");
        assert_eq!(second.body, Ok(Bytes::from_static(b"ok")));
        first
    })
}

async fn send(egress: &Egress, permit: &Permit) -> Result<Response, String> {
    let sent = egress.send(Outbound {
        permit,
        method: Method::POST,
        fields: FieldLines::new(),
        body: Bytes::from_static(b"{}"),
        effect: &Effect::Read,
        deadline: Deadline::after(Duration::from_secs(60)),
    });
    let inbound = sent.await.map_err(|failed| said(&failed.error))?;
    Ok(Response {
        status: inbound.status,
        fields: format!("{:?}", inbound.headers),
        length: inbound
            .headers
            .get(&header::CONTENT_LENGTH)
            .map(<[u8]>::to_vec),
        body: inbound
            .body
            .collect(MOST)
            .await
            .map_err(|error| said(&error)),
    })
}

fn said(error: &Error) -> String {
    format!("{} {error}", error.code().as_str())
}

/// Gives each connection what it will read, the last first.
struct Dialer(Mutex<Vec<Vec<Vec<u8>>>>);

impl Dial for Dialer {
    fn dial(&self, _: JudgedAddr) -> BoxFuture<'_, io::Result<Box<dyn Io>>> {
        let pieces = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let pieces = pieces.expect("no more than two connections");
        Box::pin(async {
            Ok(Box::new(Script {
                pieces,
                is_asked: false,
            }) as Box<dyn Io>)
        })
    }
}

/// A peer that takes every request, and then says these pieces, the last first.
struct Script {
    pieces: Vec<Vec<u8>>,
    is_asked: bool,
}

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Nobody waits for it then: it is only looked at.
        if !self.is_asked {
            return Poll::Pending;
        }
        if let Some(mut piece) = self.pieces.pop() {
            let rest = piece.split_off(piece.len().min(out.remaining()));
            out.put_slice(&piece);
            if !rest.is_empty() {
                self.pieces.push(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_asked = true;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The server is named by its address.
struct Nobody;

impl Resolve for Nobody {
    fn resolve<'a>(&'a self, _: &'a Name) -> BoxFuture<'a, Result<Answer, ResolveError>> {
        unreachable!("there is no name to resolve")
    }
}

fn permit() -> Permit {
    let target = Target::from_operator("http://1.1.1.1").expect("a target");
    let server = Server {
        relay: Relay::default(),
        name: "demo".into(),
        title: None,
        endpoint: Endpoint::new(target, "/mcp").expect("a path"),
        access: Access::default(),
        tenants: vec!["default".into()],
        read_only: ReadOnly::default(),
        pin: Pins::default(),
        mark: Mark::default(),
        builtin: true,
        era: Era::Auto,
        auth: tollgate::policy::Auth::None,
        trust: Trust::default(),
        tools: HashMap::default(),
        limits: ServerLimits::default(),
    };
    let snapshot = Snapshot {
        servers: Arc::new(HashMap::from_iter([("demo".into(), Arc::new(server))])),
        ..Snapshot::default()
    };
    decide_leg(&snapshot, Purpose::Catalogue, "demo").expect("the server is there")
}
