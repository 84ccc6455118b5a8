//! What was discovered of a server's authorization, and pinned: the issuer and the hosts of its endpoints. Each flow
//! discovers anew. One pin stands for everybody whom the server is for, so that only the operator moves it: by
//! `on_issuer_change = "follow"`, or by naming the new issuer. A person who confirms what is another than the pinned one does
//! so for their own connection; everybody else keeps theirs and is asked in turn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

use super::{asked, others};
use crate::{
    connect::{
        self, Challenge, Error, GrantRow, Inner, Key, Of, RecordsError,
        kept::{
            self, Kept,
            change::{self, End},
            grant,
        },
        provider::{
            challenge::Bearer,
            discovery::{self, Discovered},
        },
    },
    deadline::Deadline,
    policy::{OAuth, OnIssuerChange, Permit, Server},
};

/// How often a row is written while others write it too.
const TRIES: usize = 4;
/// Bytes of a challenge that are kept.
const CHALLENGE: usize = 8192;
/// What stands for a pin that cannot be read.
const UNREADABLE: &str = "unreadable: it was changed since it was pinned";

/// What was found, and how it stands to what is pinned.
pub(in crate::connect) struct Found {
    /// As it is now.
    pub(in crate::connect) discovered: Discovered,
    /// What is pinned, where this is another.
    pub(in crate::connect) changed_from: Option<String>,
    /// What the server's last challenge asked for.
    pub(in crate::connect) challenged: Option<Vec<String>>,
}

impl Found {
    /// The issuer and each host that its endpoints are at, in words: what a person who saw them confirms.
    pub(in crate::connect) fn confirmation(&self) -> String {
        described(&self.discovered)
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Pinned {
    /// `None` while only a challenge is known.
    discovered: Option<Discovered>,
    /// The lines of the server's last challenge.
    challenge: Vec<String>,
}

/// Discovers the server's authorization. What is found first is pinned.
///
/// # Errors
///
/// It has none that can be used, or the database does not work.
pub(in crate::connect) async fn get(
    inner: &Inner,
    permit: &Permit,
    deadline: Deadline,
) -> Result<Found, Error> {
    let key = key(permit.server());
    let knobs = connect::knobs(permit)?;
    let mut kept = kept::read::<Pinned>(inner, &key).await?;
    // What the server says to a stranger now, else what it said last to somebody it knew.
    let now = asked::challenge(inner, permit, deadline).await;
    let challenge = now
        .filter(|challenge| challenge.bearer() != Bearer::default())
        .or_else(|| kept.as_ref().and_then(stored_challenge));
    let before = kept
        .as_ref()
        .and_then(|kept| kept.value.as_ref()?.discovered.as_ref());
    let preferred = before.map(|pinned| pinned.issuer.as_str());
    let discovered = discovery::discover(
        &inner.egress,
        permit,
        challenge.as_ref(),
        preferred,
        deadline,
    )
    .await
    .map_err(|error| others::refused(inner, permit, error))?;
    others::check(inner, permit, &discovered).await?;
    let mut found = Found {
        discovered,
        changed_from: None,
        challenged: challenge.and_then(|challenge| challenge.bearer().scope),
    };
    for _ in 0..TRIES {
        found.changed_from = kept
            .as_ref()
            .and_then(|kept| change(kept, &found.discovered));
        let is_news = is_news(kept.as_ref(), &found.discovered);
        let stays = found.changed_from.is_some() && !moves(knobs, kept.as_ref(), &found.discovered);
        if stays || !is_news {
            return Ok(found);
        }
        if pin(inner, permit, kept.as_ref(), &found).await? {
            found.changed_from = None;
            return Ok(found);
        }
        kept = kept::read(inner, &key).await?;
    }
    Err(busy(permit))
}

/// Whether what a flow was begun with still stands to the pin as its person was told: `changed_from` was shown then.
///
/// # Errors
///
/// [`Error::IssuerChanged`] where something else is pinned by now; [`Error::State`] where nothing is.
pub(in crate::connect) async fn still(
    inner: &Inner,
    permit: &Permit,
    (begun, changed_from): (&Discovered, Option<&str>),
) -> Result<(), Error> {
    let kept = kept::read::<Pinned>(inner, &key(permit.server())).await?;
    let is_pin = |kept: &Kept<Pinned>| kept.value.as_ref().is_none_or(|it| it.discovered.is_some());
    let kept = kept.filter(is_pin).ok_or(Error::State)?;
    match change(&kept, begun) {
        Some(pinned) if changed_from != Some(&pinned) => Err(Error::IssuerChanged {
            server: permit.server().name.clone(),
            pinned: described(begun),
            found: pinned,
        }),
        _ => Ok(()),
    }
}

/// What is pinned, without asking anybody.
pub(in crate::connect) async fn pinned(
    inner: &Inner,
    permit: &Permit,
) -> Result<Option<Discovered>, RecordsError> {
    pinned_of(inner, permit.server()).await
}

/// What is pinned of any server.
pub(in crate::connect) async fn pinned_of(
    inner: &Inner,
    server: &Server,
) -> Result<Option<Discovered>, RecordsError> {
    let kept = kept::read::<Pinned>(inner, &key(server)).await?;
    Ok(kept
        .and_then(|kept| kept.value)
        .and_then(|pinned| pinned.discovered))
}

/// Keeps a challenge for the next flow, where it says anything that the last one did not.
pub(in crate::connect) async fn remember(
    inner: &Inner,
    permit: &Permit,
    challenge: &Challenge,
) -> Result<(), RecordsError> {
    let size: usize = challenge.0.iter().map(|line| line.len()).sum();
    let bearer = challenge.bearer();
    if size > CHALLENGE || (bearer.scope.is_none() && bearer.resource_metadata.is_empty()) {
        return Ok(());
    }
    let key = key(permit.server());
    let kept = kept::read::<Pinned>(inner, &key).await?;
    // A row that does not open stays as it is, for a person to see.
    let (version, mut pinned) = match kept {
        None => (None, Pinned::default()),
        Some(Kept {
            value: Some(pinned),
            version,
        }) => (Some(version), pinned),
        Some(Kept { value: None, .. }) => return Ok(()),
    };
    let known = challenge_of(&pinned.challenge).bearer();
    if (&known.scope, &known.resource_metadata) == (&bearer.scope, &bearer.resource_metadata) {
        return Ok(());
    }
    let text = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
    pinned.challenge = challenge.0.iter().map(|line| text(line)).collect();
    // Where somebody else writes, the next challenge is kept.
    kept::replace(inner, &key, version, &pinned, None).await?;
    Ok(())
}

/// The host of a URL, with a port that is not its scheme's own.
pub(in crate::connect) fn host(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

fn key(server: &Server) -> Key {
    Key::Discovery {
        server: server.name.clone(),
        endpoint: grant::endpoint(server).into(),
    }
}

fn stored_challenge(kept: &Kept<Pinned>) -> Option<Challenge> {
    let lines = &kept.value.as_ref()?.challenge;
    (!lines.is_empty()).then(|| challenge_of(lines))
}

fn challenge_of(lines: &[String]) -> Challenge {
    let line = |line: &String| line.clone().into_bytes().into_boxed_slice();
    Challenge(lines.iter().map(line).collect())
}

/// What is pinned, where `found` is not of it.
fn change(kept: &Kept<Pinned>, found: &Discovered) -> Option<String> {
    let Some(pinned) = &kept.value else {
        return Some(UNREADABLE.to_owned());
    };
    let pinned = pinned.discovered.as_ref()?;
    if pinned.issuer != found.issuer {
        return Some(pinned.issuer.clone());
    }
    let before = hosts(pinned);
    let moved = hosts(found).iter().any(|host| !before.contains(host));
    moved.then(|| described(pinned))
}

/// Whether the operator says that `found` takes the place of what is pinned.
fn moves(knobs: &OAuth, kept: Option<&Kept<Pinned>>, found: &Discovered) -> bool {
    let pinned = kept.and_then(|kept| kept.value.as_ref()?.discovered.as_ref());
    let is_other = pinned.is_none_or(|pinned| pinned.issuer != found.issuer);
    knobs.on_issuer_change == OnIssuerChange::Follow
        || knobs.endpoints.is_some()
        || is_other && knobs.issuer.as_deref() == Some(&*found.issuer)
}

fn described(discovered: &Discovered) -> String {
    let hosts = hosts(discovered).join(", ");
    format!("{} with endpoints at {hosts}", discovered.issuer)
}

fn is_news(kept: Option<&Kept<Pinned>>, found: &Discovered) -> bool {
    let pinned = kept.and_then(|kept| kept.value.as_ref()?.discovered.as_ref());
    pinned != Some(found)
}

/// Where codes, secrets and tokens go, and where people are sent.
fn hosts(discovered: &Discovered) -> Vec<String> {
    let urls = [
        Some(&discovered.authorization_endpoint),
        Some(&discovered.token_endpoint),
        discovered.revocation_endpoint.as_ref(),
        discovered.registration_endpoint.as_ref(),
    ];
    let mut hosts: Vec<String> = urls
        .into_iter()
        .flatten()
        .filter_map(|url| host(url))
        .collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

/// Writes what was found in the place of `kept`. False where another row is there by now. Connections through what was
/// pinned before end first: where that breaks off, the change is found again. Who is connected through the new issuer by
/// now stays so.
async fn pin(
    inner: &Inner,
    permit: &Permit,
    kept: Option<&Kept<Pinned>>,
    found: &Found,
) -> Result<bool, Error> {
    if let Some(before) = &found.changed_from {
        let server = &permit.server().name;
        let after = &found.discovered.issuer;
        tracing::warn!(%server, %before, %after, "the authorization server of a server is another now");
        let of = Of::Server(Arc::clone(server));
        let pinned = kept.and_then(|kept| kept.value.as_ref()?.discovered.as_ref());
        let is_other = pinned.is_some_and(|pinned| pinned.issuer != *after);
        let ends = |row: &GrantRow| !(is_other && *row.issuer == **after);
        change::end_all(inner, &of, ends, End::IssuerChanged).await?;
    }
    let mut pinned = kept.and_then(|kept| kept.value.clone()).unwrap_or_default();
    pinned.discovered = Some(found.discovered.clone());
    let version = kept.map(|kept| kept.version);
    Ok(kept::replace(inner, &key(permit.server()), version, &pinned, None).await?)
}

fn busy(permit: &Permit) -> Error {
    Error::Transient {
        server: permit.server().name.clone(),
        what: "what was discovered is being written by somebody else; try again".to_owned(),
    }
}
