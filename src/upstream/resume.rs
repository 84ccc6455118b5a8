//! Going on with an answer whose stream ended too soon (MCP 2025-11-25, transports, resumability): the server is asked
//! for what is left of it; the request itself is never repeated.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::HeaderValue;
use tokio::time::sleep_until;

use super::{Error, Session, Upstream};
use crate::{
    deadline::Deadline,
    egress::{self, Body},
    policy::Permit,
};

/// How long to wait before going back to a server that has not said.
const RETRY: Duration = Duration::from_secs(1);
/// The shortest and the longest wait, whatever a server says.
const BOUNDS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(10)];
/// Returns in a row that bring nothing new, at most.
const TRIES: u8 = 3;
/// Event ids longer than this are not kept.
const ID_BYTES: usize = 1024;

/// The way back to one answer, and how far along it is.
pub(super) struct Way {
    upstream: Upstream,
    session: Arc<Session>,
    permit: Permit,
    deadline: Deadline,
    last: Option<HeaderValue>,
    retry: Duration,
    tries: u8,
    /// What broke the stream; the error of the call where it cannot be resumed.
    cause: Option<Error>,
    /// A return under way. It is kept here, so that nothing of it is lost where a wait for it is given up.
    going: Option<BoxFuture<'static, Result<Box<Body>, Error>>>,
}

impl Way {
    pub(super) fn new(
        upstream: &Upstream,
        session: &Arc<Session>,
        permit: &Permit,
        deadline: Deadline,
    ) -> Self {
        Self {
            upstream: upstream.clone(),
            session: session.clone(),
            permit: permit.clone(),
            deadline,
            last: None,
            retry: RETRY,
            tries: 0,
            cause: None,
            going: None,
        }
    }

    /// The same, on its way already to what follows the event `last`.
    pub(super) fn after(mut self, last: HeaderValue) -> Self {
        self.last = Some(last.clone());
        self.go(last, Duration::ZERO);
        self
    }

    pub(super) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Notes an event: its id, where it has one, and whether it carries a message.
    pub(super) fn note(&mut self, id: Option<&Bytes>, says: bool) {
        let kept = id.map(event_id);
        if says || kept.as_ref().is_some_and(|id| *id != self.last) {
            self.tries = 0;
        }
        // An id that cannot be sent back leaves no place to go on from.
        if let Some(id) = kept {
            self.last = id;
        }
    }

    pub(super) fn wait_for(&mut self, retry: Duration) {
        self.retry = retry;
    }

    /// Sets out for what is left of the answer; `cause` is returned where there is no way, or no sense in it.
    pub(super) fn begin(&mut self, cause: Error) -> Result<(), Error> {
        let Some(last) = self.last.clone().filter(|_| self.tries < TRIES) else {
            return Err(cause);
        };
        self.tries += 1;
        self.cause = Some(cause);
        self.go(last, self.retry);
        Ok(())
    }

    /// The rest of the stream, once the server sends it.
    pub(super) async fn body(&mut self) -> Result<Box<Body>, Error> {
        while let Some(going) = &mut self.going {
            let found = going.await;
            self.going = None;
            match found {
                Ok(body) => return Ok(body),
                Err(_) if self.deadline.passed() => return Err(self.late()),
                Err(error) if passes(&error) => {
                    let cause = self.cause();
                    self.begin(cause)?;
                }
                Err(_) => break,
            }
        }
        Err(self.cause())
    }

    fn go(&mut self, last: HeaderValue, wait: Duration) {
        let (upstream, session) = (self.upstream.clone(), self.session.clone());
        let (permit, deadline) = (self.permit.clone(), self.deadline);
        let start = deadline.phase(wait);
        self.going = Some(Box::pin(async move {
            sleep_until(start).await;
            upstream.rest(&permit, &session, &last, deadline).await
        }));
    }

    fn cause(&mut self) -> Error {
        self.cause.take().unwrap_or_else(|| Error::NoAnswer {
            server: self.permit.server().name.clone(),
        })
    }

    fn late(&self) -> Error {
        let server = self.permit.server();
        Error::Egress {
            server: server.name.clone(),
            source: egress::Error::CallTimeout {
                host: server.endpoint.host().clone(),
            },
            destination: None,
        }
    }
}

/// Whether a failed return is worth another: the server was not reached, or cannot answer now.
fn passes(error: &Error) -> bool {
    match error {
        Error::Egress { .. } => true,
        Error::Status { status, .. } => *status >= 500,
        _ => false,
    }
}

/// A server's event id as it stands in `Last-Event-ID`; `None` where it cannot stand there.
pub(super) fn event_id(id: &Bytes) -> Option<HeaderValue> {
    let fits = (1..=ID_BYTES).contains(&id.len());
    if !fits || !id.iter().all(|byte| (0x21..=0x7e).contains(byte)) {
        return None;
    }
    let mut id = HeaderValue::from_maybe_shared(id.clone()).ok()?;
    id.set_sensitive(true);
    Some(id)
}

/// How long to wait where a server says `retry`, in milliseconds.
pub(super) fn retry(told: u64) -> Duration {
    Duration::from_millis(told).clamp(BOUNDS[0], BOUNDS[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_that_a_header_can_carry_are_kept() {
        let kept = |id: &'static [u8]| event_id(&Bytes::from_static(id)).is_some();
        assert!(kept(b"7"));
        assert!(kept(b"{\"stream\":1.2}~!"));
        assert!(kept(&[b'x'; 1024]));
        for id in [
            &b""[..],
            b"a b",
            b"a\tb",
            b"\xc3\xa9",
            b"\x7f",
            &[b'x'; 1025],
        ] {
            assert!(!kept(id), "{id:?}");
        }
    }

    #[test]
    fn no_server_makes_us_wait_long_or_ask_without_pause() {
        assert_eq!(retry(0), Duration::from_millis(100));
        assert_eq!(retry(300), Duration::from_millis(300));
        assert_eq!(retry(u64::MAX), Duration::from_secs(10));
    }
}
