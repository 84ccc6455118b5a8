//! Owns: the one way out: resolve, judge, dial, TLS, pool, send, and the answer's body under its caps.
//! Imports: layers 0–1, and `audit`'s proof of a kept intent.
//! Never: follows a redirect, dials an address that was not judged, or repeats a request that may have been sent.
//! Fails as: [`Error`], inside [`Failed`] where it matters whether anything was sent.

mod body;
mod connect;
mod decode;
mod dial;
mod error;
mod exchange;
mod fetch;
mod forward;
mod http1;
mod locate;
mod pool;
mod resolve;
mod send;
mod tls;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

pub use body::Body;
pub use connect::Connected;
pub use dial::{Dial, DialError, Io, TcpDialer};
pub use error::{Error, Failed};
pub use fetch::{Fetch, Fetched};
pub use forward::{Forward, Head, Request, Sent, VIA, is_own};
pub use http1::{Fault, Fields, Incoming, digits};
pub use locate::locate;
pub use resolve::{
    Answer, Dns, DnsSettings, DnsSetupError, Family, LeftOut, Patience, Resolve, ResolveError, Zone,
};
pub use send::{Destination, Effect, FieldLines, Inbound, Outbound};
pub use tls::{Tls, TlsError};

use crate::{memory::Memory, telemetry::Metrics};

/// The way out of one worker thread: its resolver, its dialer, its idle connections. Cheap to clone.
#[derive(Clone)]
pub struct Egress(Arc<Inner>);

struct Inner {
    resolver: Mutex<Arc<dyn Resolve>>,
    dialer: Arc<dyn Dial>,
    tls: Tls,
    pool: pool::Pool,
    memory: Memory,
    metrics: Arc<Metrics>,
}

impl Egress {
    /// Bytes of all answers that are gathered or not yet taken by their callers, over all workers.
    pub const ANSWERS: usize = 256 * 1024 * 1024;

    /// A way out that has no connection yet. Answers draw on `memory`, and what it does is counted in `metrics`.
    pub fn new(
        resolver: Arc<dyn Resolve>,
        dialer: Arc<dyn Dial>,
        tls: Tls,
        memory: Memory,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self(Arc::new(Inner {
            resolver: Mutex::new(resolver),
            dialer,
            tls,
            pool: pool::Pool::default(),
            memory,
            metrics,
        }))
    }

    /// The resolver that the next request will use.
    pub fn resolver(&self) -> Arc<dyn Resolve> {
        self.0
            .resolver
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Replaces the resolver, after a change of name servers.
    pub fn use_resolver(&self, resolver: Arc<dyn Resolve>) {
        *self
            .0
            .resolver
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = resolver;
    }

    /// Closes idle connections of policy generations before `generation`, and keeps none of them from now on.
    pub fn retire(&self, generation: u64) {
        self.0.pool.retire(generation);
    }

    /// Closes connections that have been idle for too long; each worker calls it now and then.
    pub fn sweep(&self) {
        self.0.pool.sweep();
    }

    /// How many connections stand idle.
    pub fn idle(&self) -> usize {
        self.0.pool.idle()
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Egress")
            .field("idle", &self.idle())
            .finish_non_exhaustive()
    }
}
