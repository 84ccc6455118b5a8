//! The end of sessions at their servers: at the client's word, and for clients that are gone, a few at once.

use std::{future::Future, sync::Arc};

use futures_util::future::BoxFuture;
use tokio::{sync::Semaphore, time::timeout};

use super::tell::TELLING;
use crate::{
    deadline::Deadline,
    gateway::Gateway,
    policy::{Permit, Snapshot},
    upstream::{Error, Hello, Message, Session, Upstream},
};

/// Farewells for clients that are gone, on their way at once at most. The others are left out: servers forget as well.
const AT_ONCE: usize = 16;

/// What an `initialize` comes to.
type Opened = Result<(Option<Session>, Message), Error>;

/// The places for farewells that nobody waits for.
#[derive(Debug)]
pub(in crate::gateway) struct Farewells(Arc<Semaphore>);

impl Default for Farewells {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Farewells {
    fn later(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Ok(place) = self.0.clone().try_acquire_owned() {
            tokio::spawn(async move {
                work.await;
                drop(place);
            });
        }
    }
}

/// Tells a server that a session is over. What counts is that the client ended it; the server need not agree.
pub(in crate::gateway) async fn say(upstream: &Upstream, permit: &Permit, session: &Session) {
    let deadline = Deadline::after(TELLING);
    if let Err(error) = upstream.close(permit, session, deadline).await {
        tracing::debug!(server = %permit.server().name, code = error.code().as_str(), "a session's end was not taken");
    }
}

/// Ends sessions that have long been idle, as far as their callers may still use the server.
pub(in crate::gateway) fn sweep(gateway: &Gateway, policy: &Snapshot) {
    for session in gateway.shared.sessions.sweep() {
        if let Some(permit) = session.permit(policy) {
            let upstream = gateway.upstream.clone();
            gateway.shared.farewells.later(async move {
                say(&upstream, &permit, &session.upstream).await;
            });
        }
    }
    gateway.count_sessions();
}

/// Opens a session. If the client leaves before the server has answered, the session ends as soon as it is there.
pub(in crate::gateway) async fn open(
    gateway: &Gateway,
    permit: &Permit,
    hello: Hello,
    deadline: Deadline,
) -> Opened {
    let (upstream, own) = (gateway.upstream.clone(), permit.clone());
    let work = async move { upstream.open(&own, hello, deadline).await };
    let mut opening = Opening {
        gateway: gateway.clone(),
        permit: permit.clone(),
        work: Some(Box::pin(work)),
    };
    let work = opening.work.as_mut().expect("taken below and by drop only");
    let opened = work.await;
    opening.work = None;
    opened
}

/// An `initialize` that the server has not answered yet.
struct Opening {
    gateway: Gateway,
    permit: Permit,
    work: Option<BoxFuture<'static, Opened>>,
}

impl Drop for Opening {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else {
            return;
        };
        let (upstream, permit) = (self.gateway.upstream.clone(), self.permit.clone());
        self.gateway.shared.farewells.later(async move {
            if let Ok(Ok((Some(session), _))) = timeout(TELLING, work).await {
                say(&upstream, &permit, &session).await;
            }
        });
    }
}
