//! What the forward proxies of all workers share.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;

use super::open::{Open, OpenTunnel};
use crate::{
    audit::Journal, clock::Clock, identity::Identity, policy::Snapshot, telemetry::Metrics,
};

/// What the forward proxies of all workers share: who may go where, what is recorded, and which tunnels are open.
pub struct Shared {
    pub(super) identity: Identity,
    pub(super) policy: ArcSwap<Snapshot>,
    pub(super) journal: Journal,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) open: Open,
}

impl Shared {
    /// No tunnel is open yet.
    pub fn new(
        identity: Identity,
        policy: Arc<Snapshot>,
        journal: Journal,
        clock: Arc<dyn Clock>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            identity,
            policy: ArcSwap::new(policy),
            journal,
            clock,
            metrics,
            open: Open::default(),
        }
    }

    /// Judges by another policy from now on, open tunnels as well.
    pub fn take_up(&self, policy: &Arc<Snapshot>) {
        self.policy.store(policy.clone());
        self.look_after();
    }

    /// Tells open tunnels to end, those that are quiet at once.
    pub fn drain(&self) {
        self.open.drain();
    }

    /// What is open, the oldest first.
    pub fn tunnels(&self) -> Vec<OpenTunnel> {
        self.open.list()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shared").finish_non_exhaustive()
    }
}
