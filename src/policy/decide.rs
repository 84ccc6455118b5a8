//! The decision: may this subject use this server?

use std::{collections::HashMap, sync::Arc};

use ahash::RandomState;

use super::{Access, AccessMode, Approval, Server, Snapshot, Unasked};
use crate::{
    address::{Leg, Rules},
    refusal::{Code, Refusal},
    subject::{Owner, Subject},
};

/// For what Tollgate asks a server that no caller has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// What the server shows, for the operator who looks at its pins.
    Catalogue,
    /// The end of a connection whose owner may not use the server any more.
    Disconnect,
}

/// Proof that policy let a subject use a server, or Tollgate itself for a [`Purpose`]. Made only by [`decide`] and
/// [`decide_leg`]; demanded by `gateway` and `egress`.
#[derive(Clone, Debug)]
pub struct Permit {
    server: Arc<Server>,
    servers: Arc<HashMap<Arc<str>, Arc<Server>, RandomState>>,
    /// `None` where a caller asks.
    purpose: Option<Purpose>,
    owner: Owner,
    generation: u64,
    addresses: Arc<Rules>,
}

impl Permit {
    /// The server it is for.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// The servers with OAuth that are for callers of the owner's tenant, this one included, in no order.
    pub fn oauth_servers(&self) -> impl Iterator<Item = &Server> {
        let servers = self.servers.values().map(|server| &**server);
        servers.filter(|server| {
            server.auth.oauth().is_some() && server.tenants.contains(&self.owner.tenant)
        })
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

    /// Why a call to `tool` may run without asking, if it may; `hinted` is what its pinned definition says of
    /// `readOnlyHint`. A table of the tool's own wins over `read_only`. Without a caller nothing is called.
    pub fn unasked(&self, tool: &str, hinted: bool) -> Option<Unasked> {
        if self.purpose.is_some() {
            return None;
        }
        let own = self.server.tools.get(tool).and_then(|own| own.approval);
        match own {
            Some(Approval::Never) => Some(Unasked::Never),
            Some(Approval::Ask | Approval::AlwaysAsk) => None,
            None => {
                let accepted = self.server.read_only.accepts(tool, hinted);
                accepted.then_some(Unasked::ReadOnly)
            }
        }
    }

    /// Whether the file hides `tool`.
    pub fn hidden(&self, tool: &str) -> bool {
        self.server.tools.get(tool).is_some_and(|own| own.hidden)
    }
}

/// Decides whether `subject` may use the server of this name. A server it may not use is answered like one that does
/// not exist, so that names cannot be found out by asking.
pub fn decide(snapshot: &Snapshot, subject: &Subject, server: &str) -> Result<Permit, Refusal> {
    let found = snapshot.servers.get(server);
    let Some(server) = found.filter(|found| may_use(snapshot, subject, found)) else {
        let public = format!("no server `{server}`");
        return Err(Refusal::new(Code::ServerUnknown, public));
    };
    Ok(Permit {
        server: server.clone(),
        servers: snapshot.servers.clone(),
        purpose: None,
        owner: subject.owner(),
        generation: snapshot.generation,
        addresses: snapshot.addresses.clone(),
    })
}

/// Decides whether Tollgate itself may ask the server of this name, for `purpose`. Its connections are nobody's: no
/// tenant and no user has an empty name.
///
/// # Errors
///
/// No server of this name is registered.
pub fn decide_leg(snapshot: &Snapshot, purpose: Purpose, server: &str) -> Result<Permit, Refusal> {
    let server = snapshot.servers.get(server).ok_or_else(|| {
        let public = format!("no server `{server}`");
        Refusal::new(Code::ServerUnknown, public)
    })?;
    Ok(Permit {
        server: server.clone(),
        servers: snapshot.servers.clone(),
        purpose: Some(purpose),
        owner: Owner {
            tenant: "".into(),
            user: "".into(),
        },
        generation: snapshot.generation,
        addresses: snapshot.addresses.clone(),
    })
}

/// Whether `subject` may use Tollgate's own server, which gives nobody more than the other servers did.
pub fn may_use_builtin(snapshot: &Snapshot, subject: &Subject) -> bool {
    acts(subject)
        && match snapshot.access_mode {
            AccessMode::Admins => snapshot.admins.include(subject),
            AccessMode::Files | AccessMode::AllUsers => true,
        }
}

/// Whether every caller that the policy knows gets the same from this server, so that answers may be shared.
pub fn same_for_all(snapshot: &Snapshot, server: &Server) -> bool {
    let ours = |tenant| server.tenants.contains(tenant);
    access(snapshot, server) == Access::Everyone
        && snapshot.keys.values().all(|key| ours(&key.subject.tenant))
}

pub(super) fn may_use(snapshot: &Snapshot, subject: &Subject, server: &Server) -> bool {
    acts(subject)
        && server.tenants.contains(&subject.tenant)
        && access(snapshot, server).admits(snapshot, subject)
}

pub(super) fn acts(subject: &Subject) -> bool {
    subject.scopes.call || (subject.scopes.act_for && subject.acting.is_some())
}

fn access(snapshot: &Snapshot, server: &Server) -> Access {
    match snapshot.access_mode {
        AccessMode::Files => server.access,
        AccessMode::Admins => Access::Admins,
        AccessMode::AllUsers => Access::Everyone,
    }
}

impl Access {
    fn admits(self, snapshot: &Snapshot, subject: &Subject) -> bool {
        match self {
            Self::Everyone => true,
            Self::Admins => snapshot.admins.include(subject),
        }
    }
}

#[cfg(test)]
mod tests;
