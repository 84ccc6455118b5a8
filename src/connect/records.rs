//! Where connections are kept: what a store does for them. Everything but the columns below is sealed.

use std::{error, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use uuid::Uuid;

use crate::{
    refusal::Code,
    subject::Owner,
    vault::{Binding, Kid, Purpose},
};

/// What a store promises, once it can.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, RecordsError>> + Send + 'a>>;

/// Keeps sealed rows. Every change is durable on return, and atomic against every other process of the same database.
pub trait Records: Send + Sync + fmt::Debug {
    /// The connection of one user to one server.
    fn grant<'a>(&'a self, key: &'a GrantKey) -> Stored<'a, Option<GrantRow>>;

    /// Connections in the order of their record ids, after `after`, at most 256: of one owner, of one server, or all.
    fn grants<'a>(&'a self, of: &'a Of, after: Option<Uuid>) -> Stored<'a, Vec<GrantRow>>;

    /// Puts a new connection in the place of whatever stands for its key, and gives that back. The fence of the key rises
    /// over every fence that was given out for it.
    fn put_grant<'a>(&'a self, row: GrantRow) -> Stored<'a, Option<GrantRow>>;

    /// Takes the lease of a connection, where its version is `version` and nobody holds one that lasts.
    fn claim<'a>(&'a self, claim: &'a Claim) -> Stored<'a, Claimed>;

    /// Changes a connection that was claimed, in the place of what was read under the claim, and ends the lease. False
    /// where the row is gone or was claimed again since; a lease that ran out and that nobody took is as good as one
    /// that lasts.
    fn save<'a>(&'a self, save: &'a Save) -> Stored<'a, bool>;

    /// Changes a connection that still has this version, whoever holds its lease, and ends that: nothing that was claimed
    /// until now can be saved any more. Everything that [`Records::save`] takes is taken from `row`. False where it has
    /// another version, or is gone.
    fn overwrite<'a>(&'a self, version: u64, row: &'a GrantRow) -> Stored<'a, bool>;

    /// Takes a connection away and gives it back: any, or only the one with this grant id.
    fn remove_grant<'a>(
        &'a self,
        key: &'a GrantKey,
        only: Option<[u8; 16]>,
    ) -> Stored<'a, Option<GrantRow>>;

    /// A sealed row.
    fn read<'a>(&'a self, key: &'a Key) -> Stored<'a, Option<Row>>;

    /// Puts a row in the place of version `expected`, `None` where none may be there. False where another is there. Of
    /// the flows of one owner 16 stay, the oldest goes; one that has ended counts as none.
    fn replace<'a>(&'a self, key: &'a Key, expected: Option<u64>, row: &'a Row)
    -> Stored<'a, bool>;

    /// Takes a row away and gives it back: of several who try, one gets it.
    fn take<'a>(&'a self, key: &'a Key) -> Stored<'a, Option<Row>>;

    /// Rows that are of one owner or of one server, or all, in the order of their record ids, after `after`, at most 256.
    /// Clients are of no owner and no server; flows are of both; the operator's secrets are of a server only.
    fn rows<'a>(&'a self, of: &'a Of, after: Option<Uuid>) -> Stored<'a, Vec<(Key, Row)>>;

    /// Flows of an owner to a server that have not ended: how many, and when the last of them does (Unix seconds).
    fn flows<'a>(&'a self, key: &'a GrantKey) -> Stored<'a, Option<(u32, i64)>>;
}

/// One user's connection to one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrantKey {
    /// Whose.
    pub owner: Owner,
    /// The server's name.
    pub server: Arc<str>,
}

/// Which connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// Of one user.
    Owner(Owner),
    /// Of all users, to one server.
    Server(Arc<str>),
    /// All.
    Everyone,
}

/// A connection, as it stands in the database. Times are Unix seconds by this machine's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRow {
    /// The row.
    pub record: Uuid,
    /// Whose, and to which server.
    pub key: GrantKey,
    /// This connection: another connection of the same user to the same server has another one.
    pub grant: [u8; 16],
    /// Rises with every change of the sealed part; it is part of the seal.
    pub version: u64,
    /// The issuer, the client and the resource, part of the seal.
    pub issuer: Arc<str>,
    /// The client id.
    pub client: Arc<str>,
    /// The resource.
    pub resource: Option<Arc<str>>,
    /// How it stands; a hint: the sealed part decides.
    pub state: GrantState,
    /// When the access token ends; a hint.
    pub expires_at: Option<i64>,
    /// When a refresh may be tried next.
    pub next_try: Option<i64>,
    /// Who refreshes, if anybody.
    pub lease: Option<Lease>,
    /// The key it is sealed under.
    pub kid: Kid,
    /// The sealed part.
    pub sealed: Vec<u8>,
    /// When it was made.
    pub created_at: i64,
}

impl GrantRow {
    /// What the sealed part belongs to.
    pub fn binding(&self) -> Binding<'_> {
        Binding {
            purpose: Purpose::Grant,
            record: self.record,
            tenant: &self.key.owner.tenant,
            user: Some(&self.key.owner.user),
            server: Some(&self.key.server),
            issuer: Some(&self.issuer),
            client: Some(&self.client),
            resource: self.resource.as_deref(),
            grant: Some(self.grant),
            version: self.version,
        }
    }
}

/// How a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantState {
    /// Usable.
    Active,
    /// It cannot be refreshed, for this reason (a word of [`crate::connect::Error::Reconnect`]).
    NeedsReconnect(&'static str),
}

impl GrantState {
    /// The words of [`GrantState::NeedsReconnect`].
    pub const REASONS: [&'static str; 8] = [
        "expired",
        "revoked",
        "rotation_lost",
        "issuer_changed",
        "client_dead",
        "origin_changed",
        "refused",
        "unreadable",
    ];

    /// The word that it is kept as: `active`, or the reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::NeedsReconnect(reason) => reason,
        }
    }

    /// The state that a word stands for; one that was never written is of a row that nobody can read.
    pub fn parse(word: &str) -> Self {
        match Self::REASONS.into_iter().find(|reason| *reason == word) {
            Some(reason) => Self::NeedsReconnect(reason),
            None if word == "active" => Self::Active,
            None => Self::NeedsReconnect("unreadable"),
        }
    }
}

/// A lease: who may ask for new tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The number of this claim; every later one is higher.
    pub fence: u64,
    /// The process that holds it.
    pub holder: Uuid,
    /// Until when.
    pub until: i64,
    /// Whether a token request may have been sent under it.
    pub sent: bool,
}

/// What is claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The row.
    pub record: Uuid,
    /// The version that was seen.
    pub version: u64,
    /// The process that claims.
    pub holder: Uuid,
    /// For how long.
    pub lease: Duration,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// It is ours.
    Ours {
        /// The row as it stands now, with its lease.
        row: Box<GrantRow>,
        /// What became of the attempt before.
        earlier: Earlier,
    },
    /// Somebody else's, or the row changed: the row as it stands now, if it does.
    Theirs(Option<Box<GrantRow>>),
}

/// What became of the attempt before a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// There was none, or its end is known.
    Known,
    /// A request was sent, and nobody knows what the provider did: no answer came, or whoever sent it is gone.
    Unknown,
}

/// A change under a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Save {
    /// The row.
    pub record: Uuid,
    /// The lease's fence.
    pub fence: u64,
    /// The row as it is to be: everything but `record`, `key`, `lease` and `created_at` is taken from it.
    pub row: GrantRow,
    /// Whether a request was sent without its end being known: the next claim is told.
    pub unknown: bool,
}

/// What else is kept, by what it is found with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A registered client, shared by a tenant's users.
    Client {
        /// The tenant.
        tenant: Arc<str>,
        /// The issuer, byte for byte.
        issuer: Arc<str>,
        /// The redirect URI.
        redirect_uri: Arc<str>,
    },
    /// What was discovered of a server.
    Discovery {
        /// The server's name.
        server: Arc<str>,
        /// Its registered URL.
        endpoint: Arc<str>,
    },
    /// A static secret of one user.
    Secret(GrantKey),
    /// A static secret that the operator keeps for all users of a tenant.
    Shared {
        /// The tenant.
        tenant: Arc<str>,
        /// The server's name.
        server: Arc<str>,
    },
    /// A flow, by the SHA-256 of its state.
    Pending {
        /// The digest.
        state: [u8; 32],
    },
}

/// A sealed row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The row.
    pub record: Uuid,
    /// Rises with every change; part of the seal, but for flows, which are never changed.
    pub version: u64,
    /// Whose flow and to which server; only flows have it, for [`Records::flows`].
    pub flow: Option<GrantKey>,
    /// When it goes away by itself, in Unix seconds, part of the seal; only flows do.
    pub expires_at: Option<i64>,
    /// The key it is sealed under.
    pub kid: Kid,
    /// The sealed part.
    pub sealed: Vec<u8>,
}

impl Row {
    /// What the sealed part belongs to, where this row is found with `key`.
    pub fn binding<'a>(&'a self, key: &'a Key) -> Binding<'a> {
        let none = Binding::of_row(Purpose::Client, self.record, self.version);
        let of = |purpose, key: &'a GrantKey| Binding {
            purpose,
            tenant: &key.owner.tenant,
            user: Some(&key.owner.user),
            server: Some(&key.server),
            ..none
        };
        match key {
            Key::Client {
                tenant,
                issuer,
                redirect_uri,
            } => Binding {
                tenant,
                issuer: Some(issuer),
                resource: Some(redirect_uri),
                ..none
            },
            Key::Discovery { server, endpoint } => Binding {
                purpose: Purpose::Discovery,
                server: Some(server),
                resource: Some(endpoint),
                ..none
            },
            Key::Secret(key) => of(Purpose::Secret, key),
            Key::Shared { tenant, server } => Binding {
                purpose: Purpose::Shared,
                tenant,
                server: Some(server),
                ..none
            },
            // Its place is the digest of a state, which the sealed part does not repeat. It is written once: where others
            // have the number of their change it has its end, so that nobody makes it last longer.
            Key::Pending { state } => {
                let whose = match &self.flow {
                    Some(flow) => of(Purpose::Pending, flow),
                    None => none,
                };
                Binding {
                    purpose: Purpose::Pending,
                    grant: state.first_chunk().copied(),
                    version: self.expires_at.map_or(0, i64::cast_unsigned),
                    ..whose
                }
            }
        }
    }
}

/// The database does not work.
#[derive(Debug, thiserror::Error)]
#[error("the database does not work")]
pub struct RecordsError(#[source] pub Box<dyn error::Error + Send + Sync>);

impl RecordsError {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        if self.0.is::<Older>() {
            return Code::VaultOlder;
        }
        Code::StoreUnavailable
    }
}

/// Inside [`RecordsError`]: the database is older than one that was in use here, and nobody has accepted that.
#[derive(Debug, thiserror::Error)]
#[error("it is older than one that was in use here")]
pub struct Older;
