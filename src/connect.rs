//! Owns: each user's connections to servers: discovery, registration, the flow, tokens kept fresh, and their end.
//! Imports: layers 0–2.
//! Never: shows a token, asks twice where once is enough, or sends a token to another origin than it was issued for.
//! Fails as: [`Error`].

pub mod challenge;
pub mod discovery;
mod document;
mod error;
mod fetch;
mod issuer;
pub mod pkce;
mod records;
pub mod register;
mod reseal;
pub mod resource;
pub mod revoke;
pub mod scopes;
pub mod token;

use std::{path::PathBuf, sync::Arc};

use arc_swap::ArcSwap;
use tokio::runtime::Handle;

pub use error::Error;
pub use records::*;
pub use reseal::{Resealed, reseal};

use crate::{
    audit::Journal,
    clock::Clock,
    deadline::Deadline,
    egress::Egress,
    policy::{Permit, Snapshot},
    subject::Owner,
    telemetry::Metrics,
    vault::{Credential, Vault},
};

/// The connections of all users; cheap to clone. What it does over the network runs in a runtime of its own, to the end,
/// whether or not somebody waits for it.
#[derive(Clone)]
pub struct Connections(Arc<Inner>);

/// What all clones share.
struct Inner {}

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
}

/// Settings of all connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Where browsers reach the pages, without a slash at its end.
    pub public_url: Arc<str>,
    /// The client id metadata document that the operator published.
    pub client_metadata_url: Option<Arc<str>>,
    /// Where browsers may be sent back to.
    pub return_to: Vec<Arc<str>>,
}

/// A challenge as it came: the values of all `WWW-Authenticate` lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge(pub Vec<Box<[u8]>>);

/// What a person sees before pressing Connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The server.
    pub server: Arc<str>,
    /// What people are shown.
    pub title: Option<Arc<str>>,
    /// The authorization server's host.
    pub issuer_host: String,
    /// The issuer that was pinned before, where this one is another and the operator wants to be asked.
    pub issuer_changed_from: Option<String>,
    /// Other hosts that tokens or codes go to: token and revocation endpoints.
    pub endpoint_hosts: Vec<String>,
    /// The scopes that will be asked for.
    pub scopes: Vec<String>,
    /// The host that the browser comes back to.
    pub redirect_host: String,
}

/// A flow that was begun.
pub struct Started {
    /// Where the browser goes now.
    pub authorize_url: String,
    /// The name of the cookie that binds the flow to the browser, without any prefix: 8 hexadecimal digits of the state's digest.
    pub cookie: String,
    /// The cookie's value.
    pub cookie_value: String,
}

/// What a provider sent the browser back with: each parameter of the query, decoded, in order.
pub struct Callback<'a> {
    /// The parameters.
    pub query: &'a [(String, String)],
    /// The browser's binding cookies: name without prefix, and value.
    pub cookies: &'a [(String, String)],
    /// Who is signed in.
    pub owner: &'a Owner,
}

/// How a flow ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The server.
    pub server: Arc<str>,
    /// Where the browser is sent back to, where the flow named a place.
    pub return_to: Option<String>,
}

/// A connection as its owner and the operator see it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Connection {
    /// The tenant.
    pub tenant: String,
    /// The user.
    pub user: String,
    /// The server.
    pub server: String,
    /// What people are shown.
    pub title: Option<String>,
    /// `oauth`, `bearer` or `header`.
    pub mode: String,
    /// How it stands.
    pub state: State,
    /// The issuer's host.
    pub issuer: Option<String>,
    /// What was granted.
    pub scopes: Vec<String>,
    /// When the access token ends, in seconds since 1970; `None` where nobody said.
    pub expires_at: Option<i64>,
    /// Whether it can be refreshed.
    pub refreshable: bool,
    /// When it was made, in seconds since 1970.
    pub since: Option<i64>,
}

/// How a connection stands.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// There is none.
    NotConnected,
    /// A flow is under way until then, in seconds since 1970.
    Connecting(i64),
    /// Usable.
    Connected,
    /// It has to be made again, and why.
    NeedsReconnect(String),
    /// It works, and the server wants these scopes besides.
    MorePermissions(Vec<String>),
}

/// What became of a connection at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// It revoked the tokens.
    Yes,
    /// It refused, or was out of reach.
    No,
    /// It has no way to, or the operator turned it off, or there was nothing to revoke.
    Unsupported,
}

impl Connections {
    /// Connections over what the process gives them. Results that a crash left in the spool are taken up first.
    pub fn new(_needs: Needs) -> Self {
        unimplemented!()
    }

    /// Begins nothing new and waits for what runs, 15 s at most.
    pub async fn drain(&self) {
        unimplemented!()
    }

    /// What the client id metadata document says (`/oauth/client-metadata.json`).
    pub fn client_metadata(&self) -> Option<String> {
        unimplemented!()
    }

    /// The page on which a person connects to a server.
    pub fn link(&self, _server: &str) -> String {
        unimplemented!()
    }

    /// Every connection, for the operator; at most 10,000.
    ///
    /// # Errors
    ///
    /// The database does not work.
    pub async fn all(&self, _policy: &Snapshot) -> Result<Vec<Connection>, Error> {
        unimplemented!()
    }

    /// Forgets a server: revokes every connection, deletes them, its discovery, and clients that nothing else uses.
    /// Gives how many there were and how many the provider revoked.
    ///
    /// # Errors
    ///
    /// The database does not work; what was forgotten until then stays so.
    pub async fn forget(&self, _permit: &Permit, _deadline: Deadline) -> Result<(u64, u64), Error> {
        unimplemented!()
    }

    /// What to send with a request that `permit` lets through; `None` where nothing is sent. A token that is about to
    /// end is refreshed in the background; one that has ended is waited for.
    ///
    /// # Errors
    ///
    /// There is no connection, it has to be made again, or the provider is out of reach.
    pub async fn credential(
        &self,
        _permit: &Permit,
        _deadline: Deadline,
    ) -> Result<Option<Credential>, Error> {
        unimplemented!()
    }

    /// The server answered 401 to `used`, which is `None` where nothing was sent. Another credential to send where there
    /// is one: refreshed once, or already another.
    ///
    /// # Errors
    ///
    /// As [`Connections::credential`]; [`Error::Required`] or [`Error::Reconnect`] where only the person can go on.
    pub async fn refused(
        &self,
        _permit: &Permit,
        _used: Option<&Credential>,
        _challenge: &Challenge,
        _deadline: Deadline,
    ) -> Result<Credential, Error> {
        unimplemented!()
    }

    /// The server answered 403 with a challenge: what to tell the caller, where it wants more scopes. `None` where it is
    /// about something else.
    pub async fn more_wanted(&self, _permit: &Permit, _challenge: &Challenge) -> Option<Error> {
        unimplemented!()
    }

    /// What pressing Connect would do. Discovers what is not known yet; nothing is registered.
    ///
    /// # Errors
    ///
    /// The server has no usable OAuth.
    pub async fn preview(&self, _permit: &Permit, _deadline: Deadline) -> Result<Preview, Error> {
        unimplemented!()
    }

    /// Begins a flow, as the person confirmed on the page that showed the preview.
    ///
    /// # Errors
    ///
    /// As [`Connections::preview`]; no client could be registered.
    pub async fn start(
        &self,
        _permit: &Permit,
        _return_to: Option<&str>,
        _confirmed_issuer: &str,
        _deadline: Deadline,
    ) -> Result<Started, Error> {
        unimplemented!()
    }

    /// Ends a flow: checks, exchanges the code, seals what comes of it. `permit` judges the server of the flow again.
    ///
    /// # Errors
    ///
    /// Everything that is not exactly the answer to a flow of this browser and this user, and a provider's refusal.
    pub async fn finish(
        &self,
        _callback: Callback<'_>,
        _permit: impl FnOnce(&str) -> Option<Permit> + Send,
        _deadline: Deadline,
    ) -> Result<Finished, Error> {
        unimplemented!()
    }

    /// Keeps a static secret of the permit's owner.
    ///
    /// # Errors
    ///
    /// It cannot stand in a header, or cannot be kept.
    pub async fn enter(&self, _permit: &Permit, _secret: &[u8]) -> Result<(), Error> {
        unimplemented!()
    }

    /// Revokes and deletes the connection of the permit's owner; the registration stays.
    ///
    /// # Errors
    ///
    /// The database does not work; then nothing was deleted.
    pub async fn disconnect(
        &self,
        _permit: &Permit,
        _deadline: Deadline,
    ) -> Result<Revoked, Error> {
        unimplemented!()
    }

    /// How the owner's connection to the permit's server stands.
    ///
    /// # Errors
    ///
    /// The database does not work.
    pub async fn state(&self, _permit: &Permit) -> Result<Connection, Error> {
        unimplemented!()
    }
}
