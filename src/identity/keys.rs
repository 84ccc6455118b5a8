//! `keys`: a bearer token that the policy knows by its SHA-256.

use std::{collections::BTreeSet, sync::Arc};

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use sha2::{Digest, Sha256};

use super::{
    BROWSER, Caller, Error,
    headers::{self, Named},
};
use crate::{
    clock::Clock,
    policy::{Key, Snapshot},
    subject::{Owner, Scopes, Subject},
};

/// What every agent key begins with.
const PREFIX: &[u8] = b"tg_";
/// No key is longer; the rest is not hashed.
const MAX_KEY: usize = 256;

/// Agent keys, looked up in the policy of the moment.
#[derive(Clone)]
pub struct Keys {
    clock: Arc<dyn Clock>,
}

impl Keys {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }

    pub(super) fn identify(
        &self,
        headers: &HeaderMap,
        named: Named<'_>,
        policy: &Snapshot,
    ) -> Result<Caller, Error> {
        let digest = Sha256::digest(bearer(headers)?).into();
        let key = self.known(&digest, policy)?;
        let subject = match acting(key, named)? {
            Some((user, groups)) => key_for(key, user, groups)?,
            None => key_alone(key)?,
        };
        Ok(Caller::with_key(subject, key.expires, digest))
    }

    pub(super) fn identify_proxied(
        &self,
        presented: &[u8],
        user: Option<&str>,
        policy: &Snapshot,
    ) -> Result<Caller, Error> {
        if !is_key(presented) {
            return Err(Error::NotAKey);
        }
        let digest = Sha256::digest(presented).into();
        let key = self.known(&digest, policy)?;
        // Many clients leave a credential out whose user name is empty, so that a key may also name its own user.
        let own = &*key.subject;
        let subject = match user.filter(|user| !own.scopes.call || **user != *own.user) {
            Some(user) => key_for(key, user, Vec::new())?,
            None => key_alone(key)?,
        };
        Ok(Caller::with_key(subject, key.expires, digest))
    }

    pub(super) fn again(&self, caller: &Caller, policy: &Snapshot) -> Result<Caller, Error> {
        let digest = *caller.key().ok_or(Error::Unknown)?;
        let key = self.known(&digest, policy)?;
        let subject = if caller.acting.is_some() {
            let groups = caller.groups.iter().map(|group| &**group).collect();
            key_for(key, &caller.user, groups)?
        } else {
            key_alone(key)?
        };
        // One that names somebody else now does not make him the owner of what was opened before.
        if subject.owner() != caller.owner() || subject.agent != caller.agent {
            return Err(Error::Unknown);
        }
        let again = Caller::with_key(subject, key.expires, digest);
        Ok(again.in_conversation(caller.conversation.clone(), caller.turn.clone()))
    }

    /// The person whom a key names or may act for, behind a browser. Every group that a key gives this user counts; that
    /// a key may act for him gives him none. Keys that have expired count no more.
    pub(super) fn person(&self, owner: &Owner, policy: &Snapshot) -> Option<Subject> {
        let now = self.clock.now();
        let keys = policy.keys.values();
        let lasting = keys.filter(|key| key.expires.is_none_or(|end| now < end));
        let (mut known, mut groups) = (false, BTreeSet::new());
        for key in lasting.filter(|key| key.subject.tenant == owner.tenant) {
            if key.subject.user == owner.user {
                groups.extend(key.subject.groups.iter().cloned());
                known = true;
            }
            known |= key.subject.scopes.act_for && covers(key, &owner.user);
        }
        known.then(|| Subject {
            tenant: owner.tenant.clone(),
            agent: BROWSER.into(),
            user: owner.user.clone(),
            groups: groups.into_iter().collect(),
            scopes: Scopes::CALL,
            conversation: None,
            turn: None,
            acting: None,
            evidence: BROWSER.into(),
        })
    }

    fn known<'p>(&self, digest: &[u8; 32], policy: &'p Snapshot) -> Result<&'p Key, Error> {
        let key = policy.keys.get(digest).ok_or(Error::Unknown)?;
        if key.expires.is_some_and(|end| self.clock.now() >= end) {
            return Err(Error::Expired);
        }
        Ok(key)
    }
}

/// The subject that a key names by itself.
fn key_alone(key: &Key) -> Result<Arc<Subject>, Error> {
    if !key.subject.scopes.call {
        return Err(Error::Scope("call"));
    }
    Ok(key.subject.clone())
}

/// The user and the groups that the headers assert, if they do.
fn acting<'h>(key: &Key, named: Named<'h>) -> Result<Option<(&'h str, Vec<&'h str>)>, Error> {
    if !named.has(headers::USER) && !named.has(headers::GROUPS) {
        return Ok(None);
    }
    may_act(key)?;
    let Some(user) = named.text(headers::USER)? else {
        return Err(Error::Acting(
            "`Tollgate-Groups` stands without `Tollgate-User`".to_owned(),
        ));
    };
    Ok(Some((user, named.groups()?)))
}

fn may_act(key: &Key) -> Result<(), Error> {
    let may = key.subject.scopes.act_for;
    may.then_some(())
        .ok_or_else(|| Error::Acting("the agent key lacks the scope `act-for`".to_owned()))
}

/// Whether `may_act_for` names this user.
fn covers(key: &Key, user: &str) -> bool {
    let mut may = key.may_act_for.iter();
    may.any(|may| &**may == "*" || &**may == user)
}

/// The subject of a key that acts for `user`. The user's groups are only those asserted: the key's own do not pass to him.
fn key_for(key: &Key, user: &str, groups: Vec<&str>) -> Result<Arc<Subject>, Error> {
    may_act(key)?;
    let own = &*key.subject;
    if !covers(key, user) {
        return Err(Error::Acting(format!(
            "the agent key may not act for `{user}`"
        )));
    }
    if !groups.is_empty() && !key.may_assert_groups {
        return Err(Error::Acting(
            "the agent key may not assert groups".to_owned(),
        ));
    }
    Ok(Arc::new(Subject {
        user: user.into(),
        groups: groups.into_iter().map(Arc::from).collect(),
        acting: Some(own.evidence.clone()),
        ..own.clone()
    }))
}

/// The token of the one `Authorization` header (RFC 6750, section 2.1; the scheme in any case).
fn bearer(headers: &HeaderMap) -> Result<&[u8], Error> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values
        .next()
        .map(HeaderValue::as_bytes)
        .ok_or(Error::Missing)?;
    if values.next().is_some() {
        return Err(Error::Doubled);
    }
    let (scheme, token) = value.split_at_checked(7).ok_or(Error::NotAKey)?;
    let token = token.trim_ascii();
    let key_like = scheme.eq_ignore_ascii_case(b"bearer ") && is_key(token);
    key_like.then_some(token).ok_or(Error::NotAKey)
}

fn is_key(token: &[u8]) -> bool {
    // Without a branch inside, the look at the bytes compiles to vector instructions.
    let graphic = || {
        let bytes = token.iter();
        bytes.fold(true, |all, byte| all & byte.is_ascii_graphic())
    };
    token.starts_with(PREFIX) && token.len() <= MAX_KEY && graphic()
}
