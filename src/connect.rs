//! Owns: each user's connections to servers: discovery, registration, the flow, tokens kept fresh, and their end.
//! Imports: layers 0–2.
//! Never: shows a token, asks twice where once is enough, or sends a token to another origin than it was issued for.
//! Fails as: [`Error`].

// What connections cannot do, and what is told of them.
mod error;
mod tell;
// What the store does for them, and what the operator sets.
mod records;
mod terms;
// What all of them share.
mod inner;
// What is said between Tollgate and an authorization server.
pub mod provider;
// Sealed rows, and the connections that they hold.
mod kept;
// Whose authorization server a server has, and the client that is registered there.
mod found;
// From the page that asks to the tokens.
mod flow;
// Tokens kept fresh, by one at a time.
mod refresh;
// What is sent with a request, and what a server says of it.
mod credential;
// How connections are seen.
mod view;
// Their end.
mod disconnect;

use std::{collections::BTreeSet, panic, path::PathBuf, sync::Arc};

use arc_swap::ArcSwap;
use tokio::{runtime::Handle, sync::mpsc, task::JoinHandle};

pub use self::{
    credential::secrets::shared::SharedSecret,
    disconnect::{Forgotten, Revoked},
    error::Error,
    flow::{Callback, Finished, Preview, Started},
    kept::reseal::{Resealed, reseal},
    records::*,
    refresh::spool::spooled,
    terms::Terms,
    view::{Connection, State, reason},
};
use self::{
    credential::secrets::{self, shared},
    flow::step_up,
    inner::Inner,
    provider::metadata,
};
use crate::{
    audit::Journal,
    clock::Clock,
    deadline::Deadline,
    egress::Egress,
    policy::{OAuth, Permit, Server, Snapshot},
    subject::Owner,
    telemetry::Metrics,
    vault::{Credential, Vault},
};

/// The connections of all users; cheap to clone. What it does over the network runs in a runtime of its own, to the end,
/// whether or not somebody waits for it.
#[derive(Clone)]
pub struct Connections(Arc<Inner>);

/// What connections need of the process.
pub struct Needs {
    /// Where they are kept.
    pub records: Arc<dyn Records>,
    /// What seals them.
    pub vault: Vault,
    /// The way out of the runtime below.
    pub egress: Egress,
    /// Where everything over the network is done.
    pub runtime: Handle,
    /// Where it is recorded.
    pub journal: Journal,
    /// Where it is counted.
    pub metrics: Arc<Metrics>,
    /// Wall time.
    pub clock: Arc<dyn Clock>,
    /// The settings that a reload may change.
    pub terms: Arc<ArcSwap<Terms>>,
    /// The folder for what the database would not take.
    pub spool: PathBuf,
    /// Told of each connection that was made, as far as it has room.
    pub made: mpsc::Sender<Permit>,
}

/// A challenge as it came: the values of all `WWW-Authenticate` lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge(pub Vec<Box<[u8]>>);

impl Connections {
    /// Connections over what the process gives them. Results that a crash left in the spool are taken up first.
    pub fn new(needs: Needs) -> Self {
        Self(Inner::begin(needs))
    }

    /// Begins nothing new and waits for what runs, 15 s at most.
    pub async fn drain(&self) {
        self.0.drain().await;
    }

    /// What the client id metadata document says (`/oauth/client-metadata.json`).
    pub fn client_metadata(&self) -> Option<String> {
        metadata::document(&self.0.terms.load())
    }

    /// The page on which a person connects to a server.
    pub fn link(&self, server: &str) -> String {
        self.0.terms.load().link(server)
    }

    /// Every connection, for the operator; at most 10,000.
    ///
    /// # Errors
    ///
    /// The database does not work.
    pub async fn all(&self, policy: &Snapshot) -> Result<Vec<Connection>, Error> {
        view::all(&self.0, policy).await
    }

    /// Forgets a server: revokes every connection, deletes them, its discovery, and clients that nothing else uses.
    /// Gives what there was.
    ///
    /// # Errors
    ///
    /// The database does not work; what was forgotten until then stays so.
    pub async fn forget(&self, permit: &Permit, deadline: Deadline) -> Result<Forgotten, Error> {
        let (inner, permit) = (self.0.clone(), permit.clone());
        self.run(async move { disconnect::forget(&inner, &permit, deadline).await })
            .await
    }

    /// What to send with a request that `permit` lets through; `None` where nothing is sent. A token that is about to
    /// end is refreshed in the background; one that has ended is waited for.
    ///
    /// # Errors
    ///
    /// There is no connection, it has to be made again, or the provider is out of reach.
    pub async fn credential(
        &self,
        permit: &Permit,
        deadline: Deadline,
    ) -> Result<Option<Credential>, Error> {
        credential::current(&self.0, permit, deadline).await
    }

    /// The server answered 401 to `used`, which is `None` where nothing was sent. Another credential to send where there
    /// is one: refreshed once, or already another.
    ///
    /// # Errors
    ///
    /// As [`Connections::credential`]; [`Error::Required`] or [`Error::Reconnect`] where only the person can go on.
    pub async fn refused(
        &self,
        permit: &Permit,
        used: Option<&Credential>,
        challenge: &Challenge,
        deadline: Deadline,
    ) -> Result<Credential, Error> {
        credential::another(&self.0, permit, used, challenge, deadline).await
    }

    /// The server pointed elsewhere when it was shown the token `used`, as some do with one that has ended. Another to
    /// show, once; `None` where that one is new, so that the way elsewhere is for everybody.
    ///
    /// # Errors
    ///
    /// As [`Connections::refused`].
    pub async fn pointed_elsewhere(
        &self,
        permit: &Permit,
        used: &Credential,
        deadline: Deadline,
    ) -> Result<Option<Credential>, Error> {
        credential::elsewhere(&self.0, permit, used, deadline).await
    }

    /// The server answered 401 to `used`, which [`Connections::refused`] gave: what to tell the caller. It is kept as
    /// refused, and not sent for a minute.
    pub async fn refused_again(&self, permit: &Permit, used: &Credential) -> Error {
        credential::refused_again(&self.0, permit, used).await
    }

    /// The server let `used` in. Where it was kept as refused, it is so no more.
    pub fn taken(&self, permit: &Permit, used: &Credential) {
        credential::taken(&self.0, permit, used);
    }

    /// The server answered 403 with a challenge: what to tell the caller, where it wants more scopes. `None` where it is
    /// about something else.
    pub async fn more_wanted(&self, permit: &Permit, challenge: &Challenge) -> Option<Error> {
        step_up::more_wanted(&self.0, permit, challenge).await
    }

    /// What pressing Connect would do. Discovers what is not known yet; nothing is registered.
    ///
    /// # Errors
    ///
    /// The server has no usable OAuth.
    pub async fn preview(&self, permit: &Permit, deadline: Deadline) -> Result<Preview, Error> {
        let (inner, permit) = (self.0.clone(), permit.clone());
        self.run(async move { flow::preview(&inner, &permit, deadline).await })
            .await
    }

    /// Begins a flow, where [`Preview::confirmation`] is still what the person saw on the page of the preview.
    ///
    /// # Errors
    ///
    /// As [`Connections::preview`]; no client could be registered.
    pub async fn start(
        &self,
        permit: &Permit,
        return_to: Option<&str>,
        confirmation: &str,
        deadline: Deadline,
    ) -> Result<Started, Error> {
        let (inner, permit) = (self.0.clone(), permit.clone());
        let (return_to, seen) = (return_to.map(str::to_owned), confirmation.to_owned());
        self.run(async move { flow::start(&inner, &permit, return_to, seen, deadline).await })
            .await
    }

    /// Ends a flow: checks, exchanges the code, seals what comes of it. `permit` judges the server of the flow again.
    ///
    /// # Errors
    ///
    /// Everything that is not exactly the answer to a flow of this browser and this user, and a provider's refusal.
    pub async fn finish(
        &self,
        callback: Callback<'_>,
        permit: impl FnOnce(&str) -> Option<Permit> + Send,
        deadline: Deadline,
    ) -> Result<Finished, Error> {
        flow::finish(&self.0, callback, permit, deadline).await
    }

    /// Keeps a static secret of the permit's owner.
    ///
    /// # Errors
    ///
    /// It cannot stand in a header, or cannot be kept.
    pub async fn enter(&self, permit: &Permit, secret: &[u8]) -> Result<(), Error> {
        secrets::enter(&self.0, permit, secret).await
    }

    /// Whether `server` takes the operator's secret for this tenant, before there is one.
    ///
    /// # Errors
    ///
    /// It takes none, or is of other tenants.
    pub fn takes_shared(server: &Server, tenant: &Arc<str>) -> Result<(), Error> {
        shared::takes(server, tenant)
    }

    /// Keeps the operator's secret for everybody of a tenant of `server`.
    ///
    /// # Errors
    ///
    /// The server takes none, or is of other tenants; the secret cannot stand in a header, or cannot be kept.
    pub async fn set_shared(
        &self,
        server: &Server,
        tenant: &Arc<str>,
        secret: &[u8],
    ) -> Result<(), Error> {
        shared::set(&self.0, server, tenant, secret).await
    }

    /// Takes the operator's secret away; whether there was one.
    ///
    /// # Errors
    ///
    /// The database does not work.
    pub async fn remove_shared(&self, server: &Arc<str>, tenant: &Arc<str>) -> Result<bool, Error> {
        shared::remove(&self.0, server, tenant).await
    }

    /// The operator's secrets: those that there are, and those that are missing.
    ///
    /// # Errors
    ///
    /// The database does not work.
    pub async fn shared(&self, policy: &Snapshot) -> Result<Vec<SharedSecret>, Error> {
        Ok(shared::all(&self.0, policy).await?)
    }

    /// Revokes and deletes the connection of the permit's owner; the registration stays.
    ///
    /// # Errors
    ///
    /// The database does not work; then nothing was deleted.
    pub async fn disconnect(&self, permit: &Permit, deadline: Deadline) -> Result<Revoked, Error> {
        let key = inner::key(permit);
        self.end(key, Some(permit.clone()), deadline).await
    }

    /// The servers to which `owner` has a connection or a secret, by name, whether or not policy still offers them.
    ///
    /// # Errors
    ///
    /// The database does not work.
    pub async fn held(&self, owner: &Owner) -> Result<BTreeSet<Arc<str>>, Error> {
        disconnect::held(&self.0, owner).await
    }

    /// As [`Connections::disconnect`], for an owner whom policy offers the server no more. `permit` is that of Tollgate
    /// itself for [`crate::policy::Purpose::Disconnect`]; without one, where no file names the server, nothing is revoked.
    ///
    /// # Errors
    ///
    /// As [`Connections::disconnect`].
    pub async fn leave(
        &self,
        owner: Owner,
        server: &str,
        permit: Option<Permit>,
        deadline: Deadline,
    ) -> Result<Revoked, Error> {
        let server = server.into();
        self.end(GrantKey { owner, server }, permit, deadline).await
    }

    /// How the owner's connection to the permit's server stands.
    ///
    /// # Errors
    ///
    /// The database does not work.
    pub async fn state(&self, permit: &Permit) -> Result<Connection, Error> {
        view::state(&self.0, permit).await
    }

    async fn end(
        &self,
        key: GrantKey,
        permit: Option<Permit>,
        deadline: Deadline,
    ) -> Result<Revoked, Error> {
        let inner = self.0.clone();
        self.run(
            async move { disconnect::disconnect(&inner, &key, permit.as_ref(), deadline).await },
        )
        .await
    }

    /// Does `work` in the runtime of connections, to its end, even where nobody waits for it any more.
    async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        joined(self.0.tasks.spawn_on(work, &self.0.runtime)).await
    }
}

/// What a task gives.
async fn joined<T>(task: JoinHandle<T>) -> T {
    match task.await {
        Ok(output) => output,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => panic::resume_unwind(panic),
            // The runtime is gone, and with it the process.
            Err(_) => std::future::pending().await,
        },
    }
}

/// The operator's knobs of a server with OAuth.
fn knobs(permit: &Permit) -> Result<&OAuth, Error> {
    permit.server().auth.oauth().ok_or_else(|| Error::Unusable {
        server: permit.server().name.clone(),
        what: "its file does not say auth.mode = \"oauth\"; set it where people are to connect"
            .to_owned(),
    })
}
