//! The ops listener: is the process alive, is it ready, what has it counted.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::body::Incoming;

use super::{
    Handle, Origins, Peer, Recorder,
    answer::{self, Answer},
    record::Known,
};
use crate::{
    id,
    refusal::{Code, Refusal},
};

/// The format of Prometheus' OpenMetrics text.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the ops listener asks the process.
pub trait Health: Send + Sync + 'static {
    /// What keeps the process from being ready, if anything.
    fn obstacle(&self) -> Option<String>;

    /// The metrics as OpenMetrics text.
    fn metrics(&self) -> String;
}

/// The ops listener.
#[derive(Clone)]
pub struct Ops {
    health: Arc<dyn Health>,
    origins: Origins,
    recorder: Recorder,
}

impl fmt::Debug for Ops {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Ops").finish_non_exhaustive()
    }
}

impl Ops {
    /// A listener that answers from `health`.
    pub fn new(health: Arc<dyn Health>, origins: Origins, recorder: Recorder) -> Self {
        Self {
            health,
            origins,
            recorder,
        }
    }

    fn answer(
        &self,
        request: &Request<Incoming>,
        peer: Peer,
    ) -> Result<Response<Answer<Empty<Bytes>>>, Refusal> {
        self.origins.judge(request.uri(), request.headers(), peer)?;
        if request.method() != Method::GET {
            let public = format!("`{}` is not served here", request.method());
            return Err(Refusal::new(Code::MethodNotAllowed, public));
        }
        let plain = |status, text: String| answer::text(status, "text/plain; charset=utf-8", text);
        match request.uri().path() {
            "/livez" => Ok(plain(StatusCode::OK, "ok\n".to_owned())),
            "/readyz" => Ok(match self.health.obstacle() {
                None => plain(StatusCode::OK, "ok\n".to_owned()),
                Some(why) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
            }),
            "/metrics" => Ok(answer::text(StatusCode::OK, METRICS, self.health.metrics())),
            path => {
                let public = format!(
                    "nothing is served at `{}`; there are /livez, /readyz and /metrics",
                    path.escape_debug()
                );
                Err(Refusal::new(Code::NotFound, public))
            }
        }
    }
}

impl Handle for Ops {
    type Body = Answer<Empty<Bytes>>;

    async fn handle(&self, request: Request<Incoming>, peer: Peer) -> Response<Self::Body> {
        let request_id = id::ordered(self.recorder.now());
        self.answer(&request, peer).unwrap_or_else(|refusal| {
            let known = Known {
                request_id: Some(request_id),
                method: Some(request.method().to_string().into()),
                ..Known::default()
            };
            self.recorder.refused(&refusal, known);
            answer::refusal(&refusal, "GET")
        })
    }

    fn fault(&self, code: Code, detail: &str) {
        self.recorder.fault(code, detail);
    }
}
