//! Static secrets: those that people enter, each sealed for one person, and those that the operator keeps for everybody of
//! a tenant. Each is for one server and the URL it had then.

mod fit;
pub(in crate::connect) mod of_file;
pub(in crate::connect) mod refusals;
pub(in crate::connect) mod shared;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use self::refusals::{Refused, Rest};
use super::verdict::REFUSED;
use crate::{
    audit::{Kind, OutcomeKind},
    connect::{
        Error, GrantKey, Inner, Key, RecordsError, Row, inner,
        kept::{self, grant},
    },
    policy::{Auth, Permit, Server},
    vault::Credential,
};

/// How often a row is written while others write it too.
const TRIES: usize = 4;

/// What is sealed. Times are Unix seconds.
#[derive(Serialize, Deserialize)]
pub(in crate::connect) struct Entered {
    pub(in crate::connect) value: Zeroizing<String>,
    /// The server's registered URL.
    pub(in crate::connect) endpoint: String,
    /// When it was entered.
    pub(in crate::connect) at: i64,
    /// That the server refused it since.
    #[serde(default)]
    pub(in crate::connect) refused: Option<Refused>,
}

/// A row as this process saw it.
pub(in crate::connect) struct Held {
    pub(in crate::connect) row: Row,
    /// Whether the server refused what is in it.
    refused: bool,
}

impl Entered {
    /// How the secret stands; the reason where it cannot be used.
    pub(in crate::connect) fn stands(&self, server: Option<&Server>) -> Result<(), &'static str> {
        self.fits(server)?;
        match self.refused {
            Some(_) => Err(REFUSED),
            None => Ok(()),
        }
    }

    /// A secret goes to no other URL than the one it was entered for.
    fn fits(&self, server: Option<&Server>) -> Result<(), &'static str> {
        match server {
            Some(server) if grant::endpoint(server) != self.endpoint => Err("origin_changed"),
            _ => Ok(()),
        }
    }

    /// What is sent; `None` where it cannot stand in a header.
    fn credential(&self, server: &Server) -> Option<Credential> {
        let value = self.value.as_bytes();
        match server.auth.header() {
            Some(name) => Credential::header(name.clone(), value),
            None => Credential::bearer(value),
        }
    }
}

/// Where the secret that is sent for the permit's owner is kept. Tollgate's own requests are those of the first tenant.
pub(in crate::connect) fn key(permit: &Permit) -> Key {
    match permit.server().auth {
        Auth::Shared(_) => {
            let (owner, tenants) = (permit.owner(), &permit.server().tenants);
            let of_nobody = owner.tenant.is_empty();
            let tenant = tenants.first().filter(|_| of_nobody);
            Key::Shared {
                tenant: tenant.unwrap_or(&owner.tenant).clone(),
                server: permit.server().name.clone(),
            }
        }
        _ => Key::Secret(inner::key(permit)),
    }
}

/// What is sent for the permit's owner. One that was refused lately is not.
pub(in crate::connect) async fn current(
    inner: &Inner,
    permit: &Permit,
) -> Result<Credential, Error> {
    let key = key(permit);
    let held = look(inner, &key).await?;
    let held = held.ok_or_else(|| missing(permit))?;
    let entered: Option<Entered> = kept::open(inner, &key, &held.row);
    let entered = entered.ok_or_else(|| again(permit, "unreadable"))?;
    let fits = entered.fits(Some(permit.server()));
    fits.map_err(|reason| again(permit, reason))?;
    if entered
        .refused
        .is_some_and(|refused| refused.rests(Rest::of(permit), inner.now()))
    {
        return Err(again(permit, REFUSED));
    }
    let credential = entered.credential(permit.server());
    credential.ok_or(Error::Secret)
}

/// The row at `key`, as it was seen at most a second ago.
async fn look(inner: &Inner, key: &Key) -> Result<Option<Arc<Held>>, RecordsError> {
    if let Some(held) = inner.secrets.believed(key) {
        return Ok(Some(held));
    }
    let before = inner.secrets.before();
    let Some(row) = inner.records.read(key).await? else {
        return Ok(None);
    };
    let entered: Option<Entered> = kept::open(inner, key, &row);
    let refused = entered.is_some_and(|entered| entered.refused.is_some());
    let held = Arc::new(Held { row, refused });
    inner.secrets.learn(key, held.clone(), before);
    Ok(Some(held))
}

/// That nobody has entered one.
fn missing(permit: &Permit) -> Error {
    let server = permit.server().name.clone();
    match permit.server().auth {
        Auth::Shared(_) => Error::Shared {
            server,
            reason: shared::MISSING,
        },
        _ => Error::Required { server },
    }
}

/// That another one has to be entered, and why.
pub(in crate::connect) fn again(permit: &Permit, reason: &'static str) -> Error {
    let server = permit.server().name.clone();
    match permit.server().auth {
        Auth::Shared(_) => Error::Shared { server, reason },
        _ => Error::Reconnect { server, reason },
    }
}

/// Keeps `secret` for the permit's owner.
///
/// # Errors
///
/// It cannot stand in a header, the server takes none, or the database does not work.
pub(in crate::connect) async fn enter(
    inner: &Inner,
    permit: &Permit,
    secret: &[u8],
) -> Result<(), Error> {
    let (Auth::Bearer | Auth::Header(_)) = permit.server().auth else {
        return Err(Error::Unusable {
            server: permit.server().name.clone(),
            what: "nobody enters a secret for it; set auth.mode to \"bearer\" or \"header\" where each user has one"
                .to_owned(),
        });
    };
    let key = inner::key(permit);
    keep(inner, permit.server(), &Key::Secret(key.clone()), secret).await?;
    inner.note(Kind::Connect, "entered", &key, (OutcomeKind::Allowed, None));
    // Where there is no room, the next call tells what the server shows.
    drop(inner.made.try_send(permit.clone()));
    Ok(())
}

/// Puts `secret` in the place of whatever is at `key`.
async fn keep(inner: &Inner, server: &Server, key: &Key, secret: &[u8]) -> Result<(), Error> {
    let value = fit::fit(secret, server.auth.header().is_some());
    let entered = Entered {
        value: value.ok_or(Error::Secret)?,
        endpoint: grant::endpoint(server),
        at: inner.now(),
        refused: None,
    };
    for _ in 0..TRIES {
        let row = inner.records.read(key).await?;
        let version = row.map(|row| row.version);
        if kept::replace(inner, key, version, &entered, None).await? {
            inner.secrets.forget(key);
            return Ok(());
        }
    }
    Err(Error::Transient {
        server: server.name.clone(),
        what: "the secret is being written by somebody else; try again".to_owned(),
    })
}

/// Takes the secret of one user away; whether there was one.
pub(in crate::connect) async fn remove(
    inner: &Inner,
    key: &GrantKey,
) -> Result<bool, RecordsError> {
    let row = inner.records.take(&Key::Secret(key.clone())).await?;
    Ok(row.is_some())
}
