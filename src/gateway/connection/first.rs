//! The first connection to a server that shows its lists to nobody else: what it shows then is pinned.

use crate::{
    gateway::Gateway,
    policy::{Permit, Pin},
    refusal::Code,
};

impl Gateway {
    /// Reads and pins the lists of a server, in the name of the permit's owner, who has just been connected; only where
    /// nothing is pinned of it yet. Whatever fails here is tried again by the owner's first request. Streams that wait for
    /// the connection hear of it.
    pub async fn connected(&self, permit: &Permit) {
        self.read_first(permit).await;
        self.shared.made.send_modify(|made| *made += 1);
    }

    async fn read_first(&self, permit: &Permit) {
        let server = permit.server();
        let overview = self.shared.catalog.overview(server).await;
        let is_new = overview.is_ok_and(|overview| overview.pinned.version == 0);
        if !is_new || server.pin != Pin::FirstUse {
            return;
        }
        match self.review(permit).await {
            Ok(items) => {
                let items = items.len();
                tracing::info!(server = %server.name, items, "the lists were read with the first connection");
            }
            Err(refusal) => {
                let (code, detail) = (refusal.code.as_str(), refusal.detail.as_deref());
                // The words of these are for the user whose connection it is.
                let why = match refusal.code {
                    Code::ConnectRequired | Code::ConnectAgain => {
                        "the server does not take what the user has just connected with"
                    }
                    _ => &*refusal.public,
                };
                let owner = permit.owner();
                tracing::warn!(server = %server.name, tenant = %owner.tenant, user = %owner.user, code, detail, "the lists could not be read with the first connection: {why}");
            }
        }
    }
}
