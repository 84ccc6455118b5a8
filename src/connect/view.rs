//! Connections as their owners and the operator see them.

use std::sync::Arc;

use super::{
    Error, GrantRow, GrantState, Inner, Key, Of, Row,
    credential::secrets::{
        self, Entered, of_file,
        shared::{self, SharedSecret},
    },
    found::discovered::host,
    inner,
    kept::{
        self,
        grant::{self, Payload},
    },
};
use crate::{
    policy::{Auth, Permit, Server, Shared, Snapshot},
    subject::Owner,
};

/// Connections that are listed at most.
const MOST: usize = 10_000;

/// A connection as its owner and the operator see it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Connection {
    /// The tenant.
    pub tenant: String,
    /// The user; empty where the operator keeps a secret for everybody of the tenant.
    pub user: String,
    /// The server.
    pub server: String,
    /// What people are shown.
    pub title: Option<String>,
    /// `oauth`, `bearer` or `header`; `none` and `shared` where nobody connects; `secret` where a user entered one, and no
    /// file asks for it any more.
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

impl Connection {
    /// Whether it works only after its user did something: connected again, or entered another secret.
    pub fn waits_for_user(&self) -> bool {
        let is_users = matches!(&*self.mode, "oauth" | "bearer" | "header");
        is_users && matches!(self.state, State::NeedsReconnect(_))
    }
}

impl State {
    fn again(reason: &str) -> Self {
        Self::NeedsReconnect(reason.to_owned())
    }
}

/// Why a connection has ended, of the word in [`State::NeedsReconnect`].
pub fn reason(word: &str) -> &str {
    match word {
        "expired" => "its time is over, and the provider gave no way to renew it",
        "revoked" => "the provider no longer accepts it",
        "rotation_lost" => "a renewal broke off, and its answer was lost",
        "issuer_changed" => "the server, or the operator, names another provider now",
        "client_changed" => "the operator has registered another client with its provider",
        "client_dead" => "the provider no longer knows this Tollgate",
        "origin_changed" => "the server has moved to another address",
        "refused" => "the server no longer accepts it",
        "unreadable" => "what was kept of it cannot be read",
        other => other,
    }
}

/// How the connection of the permit's owner stands.
pub(super) async fn state(inner: &Inner, permit: &Permit) -> Result<Connection, Error> {
    let server = permit.server();
    let none = nothing(permit.owner(), &server.name, Some(server));
    match &server.auth {
        Auth::OAuth(_) => {}
        Auth::None => {
            return Ok(Connection {
                state: State::Connected,
                ..none
            });
        }
        Auth::Shared(Shared {
            secret: Some(secret),
            ..
        }) => {
            let state = match of_file::is_refused(inner, server, secret) {
                true => State::again(shared::FILE_REFUSED),
                false => State::Connected,
            };
            return Ok(Connection { state, ..none });
        }
        Auth::Bearer | Auth::Header(_) | Auth::Shared(_) => {
            return of_secret(inner, permit, none).await;
        }
    }
    let key = inner::key(permit);
    let found = inner.records.grant(&key).await?;
    let connection = found.map(|row| of_grant(inner, &row, Some(server)));
    // Whoever has to connect again does so by a flow, too.
    if let Some(connection) = &connection
        && !matches!(connection.state, State::NeedsReconnect(_))
    {
        return Ok(connection.clone());
    }
    let connection = connection.unwrap_or(none);
    Ok(match inner.records.flows(&key).await? {
        Some((_, until)) => Connection {
            state: State::Connecting(until),
            ..connection
        },
        None => connection,
    })
}

/// Every connection, of servers that no file names any more, too.
pub(super) async fn all(inner: &Inner, policy: &Snapshot) -> Result<Vec<Connection>, Error> {
    let mut connections = Vec::new();
    let server = |name: &Arc<str>| policy.servers.get(name).map(|server| &**server);
    let mut after = None;
    loop {
        let rows = inner.records.grants(&Of::Everyone, after).await?;
        let Some(last) = rows.last().map(|row| row.record) else {
            break;
        };
        let of = |row: &GrantRow| of_grant(inner, row, server(&row.key.server));
        connections.extend(rows.iter().map(of));
        if connections.len() >= MOST {
            break;
        }
        after = Some(last);
    }
    let mut after = None;
    while connections.len() < MOST {
        let rows = inner.records.rows(&Of::Everyone, after).await?;
        let Some(last) = rows.last().map(|(_, row)| row.record) else {
            break;
        };
        for (key, row) in &rows {
            if let Key::Secret(of) = key {
                let mut none = nothing(&of.owner, &of.server, server(&of.server));
                if !matches!(&*none.mode, "bearer" | "header") {
                    none.mode = "secret".to_owned();
                }
                connections.push(entered(inner, key, row, server(&of.server), none));
            }
        }
        after = Some(last);
    }
    let kept_for_all = shared::all(inner, policy).await?;
    let of_shared = |secret: &SharedSecret| of_shared(secret, policy);
    connections.extend(kept_for_all.iter().map(of_shared));
    connections.sort_by(|one, other| {
        let other = (&other.server, &other.tenant, &other.user);
        (&one.server, &one.tenant, &one.user).cmp(&other)
    });
    connections.truncate(MOST);
    Ok(connections)
}

fn nothing(owner: &Owner, name: &str, server: Option<&Server>) -> Connection {
    Connection {
        tenant: owner.tenant.to_string(),
        user: owner.user.to_string(),
        server: name.to_owned(),
        title: server.and_then(|server| server.title.as_deref().map(str::to_owned)),
        mode: server
            .map_or("none", |server| mode(&server.auth))
            .to_owned(),
        state: State::NotConnected,
        issuer: None,
        scopes: Vec::new(),
        expires_at: None,
        refreshable: false,
        since: None,
    }
}

fn mode(auth: &Auth) -> &'static str {
    match auth {
        Auth::None => "none",
        Auth::Bearer => "bearer",
        Auth::Header(_) => "header",
        Auth::OAuth(_) => "oauth",
        Auth::Shared(_) => "shared",
    }
}

fn of_grant(inner: &Inner, row: &GrantRow, server: Option<&Server>) -> Connection {
    let none = Connection {
        mode: "oauth".to_owned(),
        since: Some(row.created_at),
        ..nothing(&row.key.owner, &row.key.server, server)
    };
    let Ok(payload) = grant::open(&inner.vault, row) else {
        return Connection {
            state: State::again("unreadable"),
            ..none
        };
    };
    let now = inner.now();
    Connection {
        state: standing(row, &payload, server, now),
        issuer: host(&payload.issuer),
        expires_at: payload.expires_at,
        refreshable: payload.refreshable(now),
        scopes: payload.granted_scopes,
        ..none
    }
}

/// What the sealed part says wins over the row's word.
fn standing(row: &GrantRow, payload: &Payload, server: Option<&Server>, now: i64) -> State {
    if let GrantState::NeedsReconnect(reason) = row.state {
        return State::again(reason);
    }
    if let Some(reason) = server.and_then(|server| payload.made().unwanted(server)) {
        return State::again(reason);
    }
    let has_ended = payload.expires_at.is_some_and(|end| end <= now);
    if has_ended && !payload.refreshable(now) {
        return State::again("expired");
    }
    let granted = &payload.granted_scopes;
    let wanted = payload.wanted.iter();
    let missing: Vec<_> = wanted
        .filter(|scope| !granted.contains(scope))
        .cloned()
        .collect();
    if missing.is_empty() {
        State::Connected
    } else {
        State::MorePermissions(missing)
    }
}

fn of_shared(secret: &SharedSecret, policy: &Snapshot) -> Connection {
    let owner = Owner {
        tenant: secret.tenant.as_str().into(),
        user: "".into(),
    };
    let server = policy.servers.get(&*secret.server);
    Connection {
        mode: "shared".to_owned(),
        state: match secret.wrong.as_deref() {
            None => State::Connected,
            Some(shared::MISSING) => State::NotConnected,
            Some(reason) => State::again(reason),
        },
        since: secret.since,
        ..nothing(&owner, &secret.server, server.map(|server| &**server))
    }
}

async fn of_secret(inner: &Inner, permit: &Permit, none: Connection) -> Result<Connection, Error> {
    let key = secrets::key(permit);
    let row = inner.records.read(&key).await?;
    Ok(match row {
        Some(row) => entered(inner, &key, &row, Some(permit.server()), none),
        None => none,
    })
}

fn entered(
    inner: &Inner,
    key: &Key,
    row: &Row,
    server: Option<&Server>,
    none: Connection,
) -> Connection {
    let found = kept::open::<Entered>(inner, key, row);
    let since = found.as_ref().map(|entered| entered.at);
    let state = match found.map(|entered| entered.stands(server)) {
        None => State::again("unreadable"),
        Some(Err(reason)) => State::again(reason),
        Some(Ok(())) => State::Connected,
    };
    Connection {
        state,
        since,
        ..none
    }
}
