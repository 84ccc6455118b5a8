//! The pages: `listen` drives their connections, and the operator's command line has them make a link.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;

use super::{
    control::{Answer, Login},
    core::Core,
    reload::Reloader,
};
use crate::{
    audit::Journal,
    clock::Clock,
    config::{Endpoint, Listen},
    connect::{Connections, Terms},
    identity::{Browsers, Identity},
    listen::{self, Bound, Peer},
    refusal::Code,
    store::Store,
    telemetry::Metrics,
    vault::Keyring,
    web::{Needs, Web},
};

impl listen::Handle for Web {
    type Body = Full<Bytes>;

    async fn handle(&self, request: Request<Incoming>, _: Peer) -> Response<Full<Bytes>> {
        self.answer(request).await
    }

    fn fault(&self, code: Code, detail: &str) {
        Self::fault(self, code, detail);
    }
}

/// What pages need, and where they are where `public_url` does not say so.
pub(super) struct Parts {
    pub(super) connections: Connections,
    pub(super) identity: Identity,
    pub(super) store: Arc<Store>,
    pub(super) journal: Journal,
    pub(super) metrics: Arc<Metrics>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) terms: Arc<ArcSwap<Terms>>,
}

/// The pages of a process.
pub(super) fn open(parts: Parts, keyring: &Keyring, reloader: Arc<Reloader>) -> Web {
    let (clock, sessions) = (parts.clock, keyring.mac("sessions"));
    Web::new(Needs {
        connections: parts.connections,
        browsers: Browsers::new(parts.identity, parts.store, sessions, clock.clone()),
        policy: Arc::new(move || reloader.current_full().policy.clone()),
        terms: parts.terms,
        mac: keyring.mac("web"),
        journal: parts.journal,
        metrics: parts.metrics,
        clock,
    })
}

/// Where the pages are where `public_url` does not say so: at the listener itself.
pub(super) fn address(listen: &Listen, bound: Option<&Bound>) -> Arc<str> {
    let scheme = match listen.tls {
        Some(_) => "https",
        None => "http",
    };
    match bound.map(|bound| &bound.address) {
        Some(Endpoint::Tcp(address)) if !address.ip().is_unspecified() => {
            format!("{scheme}://{address}").into()
        }
        Some(Endpoint::Tcp(address)) => format!("{scheme}://localhost:{}", address.port()).into(),
        // No page is served.
        Some(Endpoint::Unix(_)) | None => "http://127.0.0.1:8703".into(),
    }
}

/// Makes a link that signs a browser in.
pub(super) async fn login(core: &Core, tenant: Option<&str>, user: Option<&str>) -> Answer {
    let Some(web) = &core.web else {
        let off = "the pages are off; set listen.web in tollgate.toml and restart";
        return Answer::Failed(vec![off.to_owned()]);
    };
    let link = web.invite(tenant, user).await;
    core.record_admin("login", link.is_ok());
    match link {
        Ok(link) => Answer::Login(Login {
            url: link.url,
            tenant: link.invitation.owner.tenant.to_string(),
            user: link.invitation.owner.user.to_string(),
            lasts: link.invitation.lasts,
        }),
        Err(error) => Answer::Failed(vec![error.to_string()]),
    }
}
