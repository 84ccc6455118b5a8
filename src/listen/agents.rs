//! The agents listener: where to, from where, who; only then the body, and then the gateway.

use std::{fmt, future::Future, sync::Arc};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header, request::Parts};
use http_body::Body;
use hyper::body::Incoming;
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    Handle, Limits, Origins, Peer, Recorder,
    answer::{self, Answer},
    body,
    record::Known,
};
use crate::{
    gateway::Ask,
    identity::{Caller, Identity},
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
    fn serve(&self, ask: Ask) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// The agents listener of one worker; cheap to clone.
pub struct Agents<D> {
    door: D,
    shared: Arc<Shared>,
}

struct Shared {
    identity: Identity,
    policy: Arc<ArcSwap<Snapshot>>,
    origins: Origins,
    limits: Limits,
    recorder: Recorder,
}

impl<D> Agents<D> {
    /// A listener in front of `door`.
    pub fn new(
        door: D,
        identity: Identity,
        policy: Arc<ArcSwap<Snapshot>>,
        origins: Origins,
        limits: Limits,
        recorder: Recorder,
    ) -> Self {
        Self {
            door,
            shared: Arc::new(Shared {
                identity,
                policy,
                origins,
                limits,
                recorder,
            }),
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
        let started = Instant::now();
        let request_id = self.shared.recorder.request_id();
        let policy = self.shared.policy.load_full();
        let (head, body) = request.into_parts();
        let visit = Visit {
            shared: &self.shared,
            policy: &policy,
            started,
            request_id,
        };
        let (server, caller) = match visit.enter(&head, peer) {
            Ok(entered) => entered,
            Err((refusal, known)) => return visit.refuse(&head, body, &refusal, known).await,
        };
        match body::read(body, &self.shared.limits).await {
            Ok(body) => {
                let ask = Ask {
                    caller,
                    policy,
                    server,
                    head,
                    body,
                    started,
                    request_id,
                };
                self.door.serve(ask).await.map(Answer::Reply)
            }
            Err((refusal, rest)) => {
                let known = Known {
                    subject: Some(caller.subject().clone()),
                    server: Some(server),
                    ..Known::default()
                };
                visit.refuse(&head, rest, &refusal, known).await
            }
        }
    }

    fn fault(&self, code: Code, detail: &str) {
        self.shared.recorder.fault(code, detail);
    }
}

/// One request on its way in.
struct Visit<'a> {
    shared: &'a Shared,
    policy: &'a Snapshot,
    started: Instant,
    request_id: Uuid,
}

impl Visit<'_> {
    /// Everything that the head alone decides, in order.
    fn enter(&self, head: &Parts, peer: Peer) -> Result<(Arc<str>, Caller), (Refusal, Known)> {
        let mut known = Known::default();
        let origins = &self.shared.origins;
        if let Err(refusal) = origins.judge(&head.uri, &head.headers, peer) {
            return Err((refusal, known));
        }
        let server = match self.route(head) {
            Ok(server) => server,
            Err(refusal) => return Err((refusal, known)),
        };
        known.server = Some(server.clone());
        match self.shared.identity.identify(&head.headers, self.policy) {
            Ok(caller) => Ok((server, caller)),
            Err(error) => Err((error.into(), known)),
        }
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
        let known = self.policy.servers.get_key_value(name);
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
        let known = Known {
            request_id: Some(self.request_id),
            method: Some(head.method.as_str().into()),
            generation: Some(self.policy.generation),
            ms_total: Some(self.started.elapsed().as_secs_f64() * 1e3),
            ..known
        };
        self.shared.recorder.refused(refusal, known);
        let mut answer = answer::refusal(refusal, "POST, GET, DELETE");
        if !body::discard(rest, &head.headers).await {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(header::CONNECTION, close);
        }
        answer
    }
}

/// `[a-z0-9][a-z0-9-]{0,31}`, as server files are named.
fn is_server_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=32).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(inner)
}
