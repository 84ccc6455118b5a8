//! An authorization server on loopback that answers as its data says, and remembers what it was asked.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response,
    body::Incoming,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;
use tollgate::egress::Io;
use url::form_urlencoded;

/// What is answered to one question, `METHOD URL`: each time the next, the last for ever. What stands in no table is
/// answered with 404 and a page.
pub(crate) type Answers = HashMap<String, Vec<Answer>>;

/// One answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    #[serde(default = "success")]
    pub(crate) status: u16,
    /// `Content-Type`; JSON where the body is no text.
    #[serde(rename = "type")]
    pub(crate) media_type: Option<String>,
    #[serde(default)]
    pub(crate) headers: HashMap<String, String>,
    /// Text is sent as it is, anything else as JSON.
    #[serde(default)]
    pub(crate) body: Value,
    /// So many bytes of a JSON document that never ends, in place of the body.
    #[serde(default)]
    pub(crate) bytes: usize,
    /// Nothing is said, and the connection stays open.
    #[serde(default)]
    pub(crate) hangs: bool,
    /// The connection ends without a word.
    #[serde(default)]
    pub(crate) closes: bool,
}

fn success() -> u16 {
    200
}

/// The server.
pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    _task: JoinSet<()>,
}

struct State {
    scheme: &'static str,
    answers: Mutex<Answers>,
    asked: Mutex<Vec<Value>>,
}

impl Provider {
    /// One that is spoken to over TLS where `acceptor` is given.
    pub(crate) async fn start(acceptor: Option<TlsAcceptor>, answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            scheme: if acceptor.is_some() { "https" } else { "http" },
            answers: Mutex::new(answers),
            asked: Mutex::default(),
        });
        let shared = state.clone();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, state) = (acceptor.clone(), shared.clone());
                connections.spawn(async move {
                    match acceptor {
                        None => serve(Box::new(stream), state).await,
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                serve(Box::new(stream), state).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            address,
            state,
            _task: task,
        }
    }

    /// Adds answers, in place of those that a question had.
    pub(crate) fn answer(&self, answers: Answers) {
        self.state.answers.lock().unwrap().extend(answers);
    }

    /// What it was asked, in order: `"METHOD URL"`, or an object with `ask` and what came with it: `form`, `json`,
    /// `basic` (decoded) and `bearer`.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.state.asked.lock().unwrap().clone()
    }
}

async fn serve(stream: Box<dyn Io>, state: Arc<State>) {
    let service = service_fn(move |request| {
        let state = state.clone();
        async move { state.respond(request).await }
    });
    // A client that leaves is no fault.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl State {
    async fn respond(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Closed> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let host = head.headers[HOST].to_str().unwrap();
        let question = format!("{} {}://{host}{}", head.method, self.scheme, head.uri);
        let noted = noted(&question, &head.headers, &body);
        self.asked.lock().unwrap().push(noted);
        let answer = self.next(&question);
        if answer.as_ref().is_some_and(|answer| answer.closes) {
            return Err(Closed);
        }
        if answer.as_ref().is_some_and(|answer| answer.hangs) {
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
        Ok(answer.map_or_else(absent, Answer::response))
    }

    fn next(&self, question: &str) -> Option<Answer> {
        let mut answers = self.answers.lock().unwrap();
        match answers.get_mut(question)? {
            several if several.len() > 1 => Some(several.remove(0)),
            last => last.first().cloned(),
        }
    }
}

/// Ends a connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("closed")]
struct Closed;

fn absent() -> Response<Full<Bytes>> {
    let page = Full::new(Bytes::from_static(
        b"<!doctype html><title>Not here</title>",
    ));
    let response = Response::builder()
        .status(404)
        .header(CONTENT_TYPE, "text/html");
    response.body(page).unwrap()
}

impl Answer {
    fn response(self) -> Response<Full<Bytes>> {
        let (kind, body) = match self.body {
            Value::Null => (None, Bytes::new()),
            Value::String(text) => (None, text.into()),
            value => (Some("application/json"), value.to_string().into()),
        };
        let endless = || format!("{{\"pad\":\"{}", "x".repeat(self.bytes)).into();
        let body = if self.bytes > 0 { endless() } else { body };
        let mut response = Response::builder().status(self.status);
        if let Some(kind) = self.media_type.as_deref().or(kind) {
            response = response.header(CONTENT_TYPE, kind);
        }
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        response.body(Full::new(body)).unwrap()
    }
}

fn noted(question: &str, headers: &hyper::HeaderMap, body: &Bytes) -> Value {
    let mut noted = serde_json::Map::new();
    let kind = headers
        .get(CONTENT_TYPE)
        .map_or("", |value| value.to_str().unwrap());
    if kind == "application/x-www-form-urlencoded" {
        let mut form = serde_json::Map::new();
        for (name, value) in form_urlencoded::parse(body) {
            let twice = form.insert(name.into_owned(), json!(value));
            assert_eq!(twice, None, "a parameter stands twice: {question}");
        }
        noted.insert("form".into(), form.into());
    } else if !body.is_empty() {
        noted.insert("json".into(), serde_json::from_slice(body).unwrap());
    }
    if let Some(value) = headers.get(AUTHORIZATION) {
        let (scheme, rest) = value.to_str().unwrap().split_once(' ').unwrap();
        let rest = match scheme {
            "Basic" => base64::Engine::decode(&base64::engine::general_purpose::STANDARD, rest)
                .map(|bytes| String::from_utf8(bytes).unwrap())
                .unwrap(),
            _ => rest.to_owned(),
        };
        noted.insert(scheme.to_ascii_lowercase(), rest.into());
    }
    if noted.is_empty() {
        return question.into();
    }
    noted.insert("ask".into(), question.into());
    noted.into()
}
