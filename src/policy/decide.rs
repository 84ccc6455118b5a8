//! The decision: may this subject use this server?

use std::sync::Arc;

use super::{Server, Snapshot, Unasked};
use crate::{
    address::{Leg, Rules},
    refusal::Refusal,
    subject::{Owner, Subject},
};

/// Proof that policy let a subject use a server. Made only by [`decide`]; demanded by `gateway` and `egress`.
#[derive(Clone, Debug)]
pub struct Permit {
    server: Arc<Server>,
    owner: Owner,
    generation: u64,
    addresses: Arc<Rules>,
}

impl Permit {
    /// The server it is for.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Whose connections may be used.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The policy generation that decided.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The address rules of that generation.
    pub fn addresses(&self) -> &Arc<Rules> {
        &self.addresses
    }

    /// The leg that address rules see.
    pub fn leg(&self) -> Leg {
        Leg::Server(self.server.name.clone())
    }

    /// Why a call to `tool` may run without asking, if it may.
    pub fn unasked(&self, _tool: &str) -> Option<Unasked> {
        todo!()
    }

    /// Whether the file hides `tool`.
    pub fn hidden(&self, _tool: &str) -> bool {
        todo!()
    }
}

/// Decides whether `subject` may use the server of this name. A server it may not use is answered like one that does not exist.
pub fn decide(_snapshot: &Snapshot, _subject: &Subject, _server: &str) -> Result<Permit, Refusal> {
    todo!()
}
