//! The agents listener: where to, from where, who; only then the body, and then the gateway.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header, request::Parts};
use http_body::Body;
use hyper::body::Incoming;
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    Handle, Origins, Peer, Recorder,
    answer::{self, Answer},
    body,
    record::Known,
};
use crate::{
    gateway::{Ask, Gateway, ReplyBody},
    identity::{Caller, Identity},
    memory::Memory,
    policy::Snapshot,
    refusal::{Code, Refusal},
};

/// What stands behind the door: the gateway, or a stand-in of this room's own tests.
pub trait Door: Clone + Send + Sync + 'static {
    /// The body of its answers.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Unpin
        + 'static;

    /// Answers a request whose caller is known and whose body is read.
    fn serve(&self, ask: &Ask) -> impl Future<Output = Response<Self::Body>> + Send;
}

impl Door for Gateway {
    type Body = ReplyBody;

    async fn serve(&self, ask: &Ask) -> Response<ReplyBody> {
        Self::serve(self, ask).await
    }
}

/// The agents listener of one worker; cheap to clone.
pub struct Agents<D> {
    door: D,
    shared: Arc<Shared>,
}

struct Shared {
    identity: Identity,
    terms: Arc<ArcSwap<Terms>>,
    recorder: Recorder,
    bodies: Memory,
}

/// What a reload may change; each request is judged by the terms that held when its head was read.
#[derive(Debug)]
pub struct Terms {
    /// Who may use what.
    pub policy: Arc<Snapshot>,
    /// Which names and origins are accepted.
    pub origins: Origins,
    /// Bytes of a request body (`limits.request_bytes`).
    pub request_bytes: usize,
    /// A whole request body may take this long.
    pub body: Duration,
}

impl<D> Agents<D> {
    /// A listener in front of `door`; the bodies of all requests draw on `bodies`.
    pub fn new(
        door: D,
        identity: Identity,
        terms: Arc<ArcSwap<Terms>>,
        recorder: Recorder,
        bodies: Memory,
    ) -> Self {
        let shared = Shared {
            identity,
            terms,
            recorder,
            bodies,
        };
        Self {
            door,
            shared: Arc::new(shared),
        }
    }
}

impl<D: Clone> Clone for Agents<D> {
    fn clone(&self) -> Self {
        Self {
            door: self.door.clone(),
            shared: self.shared.clone(),
        }
    }
}

impl<D> fmt::Debug for Agents<D> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Agents").finish_non_exhaustive()
    }
}

impl<D: Door> Handle for Agents<D> {
    type Body = Answer<D::Body>;

    async fn handle(&self, request: Request<Incoming>, peer: Peer) -> Response<Self::Body> {
        let answer = self.answer(request, peer).await;
        self.shared.recorder.answered(answer.status());
        answer
    }

    fn fault(&self, code: Code, detail: &str) {
        self.shared.recorder.fault(code, detail);
    }
}

impl<D: Door> Agents<D> {
    async fn answer(&self, request: Request<Incoming>, peer: Peer) -> Response<Answer<D::Body>> {
        let terms = self.shared.terms.load_full();
        let visit = Visit {
            shared: &self.shared,
            terms: &terms,
            started: Instant::now(),
            request_id: self.shared.recorder.request_id(),
        };
        let (head, body) = request.into_parts();
        let mut known = Known::default();
        let (server, caller) = match visit.enter(&head, peer, &mut known) {
            Ok(entered) => entered,
            Err(refusal) => return visit.refuse(&head, body, &refusal, known).await,
        };
        let bounds = body::Bounds {
            bytes: terms.request_bytes,
            since: visit.started,
            within: terms.body,
            together: &self.shared.bodies,
        };
        let unread = Unread {
            visit: &visit,
            head: &head,
            known: Some(known),
        };
        let read = body::read(body, &bounds).await;
        let known = unread.read();
        match read {
            Ok(body) => {
                let ask = Ask {
                    caller,
                    policy: terms.policy.clone(),
                    server,
                    head,
                    body,
                    started: visit.started,
                    request_id: visit.request_id,
                };
                self.door.serve(&ask).await.map(Answer::Reply)
            }
            Err((refusal, rest)) => visit.refuse(&head, rest, &refusal, known).await,
        }
    }
}

/// One request on its way in.
struct Visit<'a> {
    shared: &'a Shared,
    terms: &'a Terms,
    started: Instant,
    request_id: Uuid,
}

impl Visit<'_> {
    /// Everything that the head alone decides, in order; `known` keeps what was found out.
    fn enter(
        &self,
        head: &Parts,
        peer: Peer,
        known: &mut Known,
    ) -> Result<(Arc<str>, Caller), Refusal> {
        self.terms.origins.judge(&head.uri, &head.headers, peer)?;
        let server = self.route(head)?;
        known.server = Some(server.clone());
        let caller = self
            .shared
            .identity
            .identify(&head.headers, &self.terms.policy)?;
        known.subject = Some(caller.subject().clone());
        Ok((server, caller))
    }

    /// The server that the path names.
    fn route(&self, head: &Parts) -> Result<Arc<str>, Refusal> {
        let path = head.uri.path();
        let Some(name) = path
            .strip_prefix("/mcp/")
            .filter(|name| is_server_name(name))
        else {
            let public = match path {
                "/mcp" => {
                    "one endpoint for all servers is not available in this version".to_owned()
                }
                _ => format!("nothing is served at `{}`", path.escape_debug()),
            };
            return Err(Refusal::new(Code::NotFound, public));
        };
        if ![Method::POST, Method::GET, Method::DELETE].contains(&head.method) {
            let public = format!("`{}` is not served here", head.method);
            return Err(Refusal::new(Code::MethodNotAllowed, public));
        }
        let known = self.terms.policy.servers.get_key_value(name);
        Ok(known.map_or_else(|| name.into(), |(name, _)| name.clone()))
    }

    /// Answers with a refusal that leaves a record.
    async fn refuse<B>(
        &self,
        head: &Parts,
        rest: Incoming,
        refusal: &Refusal,
        known: Known,
    ) -> Response<Answer<B>> {
        self.record(head, refusal, known);
        let mut answer = answer::refusal(refusal, "POST, GET, DELETE");
        if !body::discard(rest, &head.headers).await {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(header::CONNECTION, close);
        }
        answer
    }

    fn record(&self, head: &Parts, refusal: &Refusal, known: Known) {
        let known = Known {
            request_id: Some(self.request_id),
            method: Some(head.method.to_string().into()),
            generation: Some(self.terms.policy.generation),
            took: Some(self.started.elapsed()),
            ..known
        };
        self.shared.recorder.refused(refusal, known);
    }
}

/// A request whose body is still coming. Dropped before it has come, as when the process stops, it leaves its record.
struct Unread<'v> {
    visit: &'v Visit<'v>,
    head: &'v Parts,
    known: Option<Known>,
}

impl Unread<'_> {
    /// The body has come, or will not.
    fn read(mut self) -> Known {
        self.known.take().unwrap_or_default()
    }
}

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        if let Some(known) = self.known.take() {
            let gone = "the request ended before its body had come";
            let refusal = Refusal::new(Code::ClientGone, gone);
            self.visit.record(self.head, &refusal, known);
        }
    }
}

/// `[a-z0-9][a-z0-9-]{0,31}`, as server files are named.
fn is_server_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=32).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(inner)
}
