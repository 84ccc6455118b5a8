//! Owns: the pages: sign-in, what a person is connected to, connecting and disconnecting, and the way back from providers.
//! Imports: layers 0–4.
//! Never: begins anything by GET, sends a script, or writes a query, a form or a cookie into a log or a record.
//! Fails as: a page that says what happened and what to do next, with the code of a [`Refusal`], and a record.

mod answer;
mod callback;
mod connect;
mod cookies;
mod flash;
mod form;
mod pages;
mod record;
mod route;
mod sign_in;
mod site;
mod style;
mod visit;

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;

use self::{record::Recorder, route::Route, site::Site, visit::Visit};
use crate::{
    audit::Journal,
    clock::Clock,
    connect::{Connections, Terms},
    identity::{Browsers, Invitation, LoginError},
    policy::Snapshot,
    refusal::{Code, Refusal},
    telemetry::Metrics,
    vault::Mac,
};

/// What pages need of the process.
pub struct Needs {
    /// Each user's connections.
    pub connections: Connections,
    /// Who is signed in.
    pub browsers: Browsers,
    /// The policy in force.
    pub policy: Arc<dyn Fn() -> Arc<Snapshot> + Send + Sync>,
    /// The settings that a reload may change; the same that `connections` has.
    pub terms: Arc<ArcSwap<Terms>>,
    /// Binds forms and results to the sign-in that they were made for.
    pub mac: Mac,
    /// Where sign-ins and refusals are recorded.
    pub journal: Journal,
    /// Where requests are counted.
    pub metrics: Arc<Metrics>,
    /// Wall time.
    pub clock: Arc<dyn Clock>,
}

/// The pages; cheap to clone.
#[derive(Clone)]
pub struct Web(Arc<Inner>);

struct Inner {
    connections: Connections,
    browsers: Browsers,
    policy: Arc<dyn Fn() -> Arc<Snapshot> + Send + Sync>,
    terms: Arc<ArcSwap<Terms>>,
    mac: Mac,
    recorder: Recorder,
}

/// A link that signs a browser in.
#[derive(Clone, PartialEq, Eq)]
pub struct Link {
    /// `{public_url}/login?token=…`.
    pub url: String,
    /// Whom it signs in.
    pub invitation: Invitation,
}

impl Web {
    /// The pages of a process.
    pub fn new(needs: Needs) -> Self {
        Self(Arc::new(Inner {
            connections: needs.connections,
            browsers: needs.browsers,
            policy: needs.policy,
            terms: needs.terms,
            mac: needs.mac,
            recorder: Recorder::new(needs.journal, needs.clock, needs.metrics),
        }))
    }

    /// Answers a request.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let inner = &*self.0;
        let terms = inner.terms.load_full();
        let site = Site::new(&terms.public_url);
        let mut answer = match inner.answer(&head, body, &site).await {
            Ok(answer) => answer,
            Err(refusal) => {
                inner.recorder.refused(&refusal, &head.method);
                let allow = Route::of(head.uri.path()).map_or("", Route::allows);
                answer::refused(&refusal, allow)
            }
        };
        answer::shield(&mut answer);
        inner.recorder.answered(answer.status());
        answer
    }

    /// Takes down what went wrong on a connection outside any request.
    pub fn fault(&self, code: Code, detail: &str) {
        self.0.recorder.fault(code, detail);
    }

    /// Records what was only counted until now; for when nothing more is served.
    pub fn settle(&self) {
        self.0.recorder.settle();
    }

    /// Makes a link that signs a browser in, for the operator.
    ///
    /// # Errors
    ///
    /// As [`Browsers::invite`].
    pub async fn invite(
        &self,
        tenant: Option<&str>,
        user: Option<&str>,
    ) -> Result<Link, LoginError> {
        let inner = &*self.0;
        let invitation = inner
            .browsers
            .invite(tenant, user, &(inner.policy)())
            .await?;
        let public_url = &inner.terms.load().public_url;
        Ok(Link {
            url: format!("{public_url}{}?token={}", route::LOGIN, invitation.token),
            invitation,
        })
    }
}

impl Inner {
    async fn answer(
        &self,
        head: &http::request::Parts,
        body: Incoming,
        site: &Site,
    ) -> Result<Response<Full<Bytes>>, Refusal> {
        if let Some(there) = site.judge(head)? {
            return Ok(answer::moved(&there));
        }
        let route = Route::of(head.uri.path()).ok_or_else(route::unknown)?;
        if !route.serves(&head.method) {
            return Err(route::wrong_method(&head.method));
        }
        let visit = Visit {
            inner: self,
            site,
            head,
            policy: (self.policy)(),
        };
        if head.method == Method::POST {
            site.judge_origin(&head.headers)?;
            let form = form::read(head, body).await?;
            visit.post(route, &form).await
        } else {
            visit.get(route).await
        }
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Web").finish_non_exhaustive()
    }
}
