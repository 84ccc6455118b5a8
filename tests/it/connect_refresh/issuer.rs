//! An authorization server that rotates refresh tokens, can be held up at any point, and does not forgive.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    task::JoinSet,
};
use url::form_urlencoded;

/// What comes of the next refresh that no plan was made for before.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plan {
    /// Nothing is done until it is released.
    HoldFirst,
    /// It is done, and answered once it is released.
    HoldLast,
    /// It is done, and the connection ends without an answer.
    HangUp,
    /// This status, and `Retry-After`.
    Status(u16, Option<&'static str>),
    /// This error.
    Refuse(&'static str),
}

/// What a refresh token that was used before is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reuse {
    /// It ends everything that came of the same authorization.
    Kills,
    /// It is refused.
    Refuses,
    /// It gives new tokens.
    Graces,
}

pub(super) struct Issuer {
    pub(super) address: SocketAddr,
    state: Arc<State>,
    _task: JoinSet<()>,
}

struct State {
    tokens: Mutex<Tokens>,
    plans: Mutex<VecDeque<Plan>>,
    reuse: Reuse,
    /// Of access tokens, in seconds.
    lifetime: AtomicU64,
    arrived: watch::Sender<usize>,
    done: watch::Sender<usize>,
    released: Semaphore,
}

#[derive(Default)]
struct Tokens {
    last: u64,
    /// The authorization that each refresh token is of, until it is used.
    fresh: HashMap<String, u64>,
    used: HashMap<String, u64>,
    dead: HashSet<u64>,
    revoked: Vec<String>,
}

impl Issuer {
    pub(super) async fn start(reuse: Reuse) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            tokens: Mutex::default(),
            plans: Mutex::default(),
            reuse,
            lifetime: AtomicU64::new(3600),
            arrived: watch::Sender::new(0),
            done: watch::Sender::new(0),
            released: Semaphore::new(0),
        });
        let shared = state.clone();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let state = shared.clone();
                connections.spawn(async move {
                    let service = service_fn(move |request| {
                        let state = state.clone();
                        async move { state.respond(request).await }
                    });
                    // A client that leaves is no fault.
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self {
            address,
            state,
            _task: task,
        }
    }

    pub(super) fn plan(&self, plan: Plan) {
        self.state.plans.lock().unwrap().push_back(plan);
    }

    pub(super) fn lives(&self, seconds: u64) {
        self.state.lifetime.store(seconds, Ordering::Relaxed);
    }

    /// Lets one refresh go on that is held.
    pub(super) fn release(&self) {
        self.state.released.add_permits(1);
    }

    /// Waits until so many refreshes were asked for.
    pub(super) async fn arrived(&self, refreshes: usize) {
        let mut arrived = self.state.arrived.subscribe();
        arrived.wait_for(|count| *count >= refreshes).await.unwrap();
    }

    /// Waits until so many refreshes were decided.
    pub(super) async fn done(&self, refreshes: usize) {
        let mut done = self.state.done.subscribe();
        done.wait_for(|count| *count >= refreshes).await.unwrap();
    }

    /// How many refreshes were asked for.
    pub(super) fn refreshes(&self) -> usize {
        *self.state.arrived.borrow()
    }

    pub(super) fn is_alive(&self, refresh: &str) -> bool {
        let tokens = self.state.tokens.lock().unwrap();
        let family = tokens.fresh.get(refresh);
        family.is_some_and(|family| !tokens.dead.contains(family))
    }

    pub(super) fn revoked(&self) -> Vec<String> {
        self.state.tokens.lock().unwrap().revoked.clone()
    }
}

impl State {
    async fn respond(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Closed> {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let form: HashMap<String, String> = form_urlencoded::parse(&body).into_owned().collect();
        if path == "/revoke" {
            self.revoke(&form["token"]);
            return Ok(Response::new(Full::default()));
        }
        if form["grant_type"] == "authorization_code" {
            let mut tokens = self.tokens.lock().unwrap();
            let family = tokens.last + 1;
            return Ok(answer(200, &self.issue(&mut tokens, family)));
        }
        let plan = self.plans.lock().unwrap().pop_front();
        self.arrived.send_modify(|count| *count += 1);
        if matches!(plan, Some(Plan::HoldFirst)) {
            self.held().await;
        }
        let answered = match plan {
            Some(Plan::Status(status, retry_after)) => {
                let mut response = answer(status, &json!({}));
                if let Some(seconds) = retry_after {
                    let seconds = seconds.parse().unwrap();
                    response.headers_mut().insert("retry-after", seconds);
                }
                response
            }
            Some(Plan::Refuse(error)) => answer(400, &json!({ "error": error })),
            _ => self.refresh(&form["refresh_token"]),
        };
        self.done.send_modify(|count| *count += 1);
        match plan {
            Some(Plan::HangUp) => return Err(Closed),
            Some(Plan::HoldLast) => self.held().await,
            _ => {}
        }
        Ok(answered)
    }

    async fn held(&self) {
        self.released.acquire().await.unwrap().forget();
    }

    fn refresh(&self, token: &str) -> Response<Full<Bytes>> {
        let mut tokens = self.tokens.lock().unwrap();
        let refused = || answer(400, &json!({ "error": "invalid_grant" }));
        let family = match (tokens.fresh.remove(token), tokens.used.get(token).copied()) {
            (Some(family), _) => family,
            (None, Some(family)) if self.reuse == Reuse::Graces => family,
            (None, Some(family)) => {
                if self.reuse == Reuse::Kills {
                    tokens.dead.insert(family);
                }
                return refused();
            }
            (None, None) => return refused(),
        };
        if tokens.dead.contains(&family) {
            return refused();
        }
        tokens.used.insert(token.to_owned(), family);
        answer(200, &self.issue(&mut tokens, family))
    }

    fn issue(&self, tokens: &mut Tokens, family: u64) -> Value {
        tokens.last += 1;
        let number = tokens.last;
        tokens.fresh.insert(format!("rt-{number}"), family);
        json!({
            "access_token": format!("at-{number}"),
            "refresh_token": format!("rt-{number}"),
            "token_type": "Bearer",
            "expires_in": self.lifetime.load(Ordering::Relaxed),
        })
    }

    fn revoke(&self, token: &str) {
        let mut tokens = self.tokens.lock().unwrap();
        if let Some(family) = tokens.fresh.remove(token) {
            tokens.dead.insert(family);
        }
        tokens.revoked.push(token.to_owned());
    }
}

fn answer(status: u16, body: &Value) -> Response<Full<Bytes>> {
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .header("cache-control", "no-store");
    response.body(Full::from(body.to_string())).unwrap()
}

/// Ends a connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("closed")]
struct Closed;
