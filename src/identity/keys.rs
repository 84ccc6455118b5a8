//! `keys`: a bearer token that the policy knows by its SHA-256.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use sha2::{Digest, Sha256};

use super::{Caller, Error, headers};
use crate::{
    clock::Clock,
    policy::{Key, Snapshot},
    subject::Subject,
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

    pub(super) fn identify(&self, headers: &HeaderMap, policy: &Snapshot) -> Result<Caller, Error> {
        let digest: [u8; 32] = Sha256::digest(bearer(headers)?).into();
        let key = policy.keys.get(&digest).ok_or(Error::Unknown)?;
        if key.expires.is_some_and(|end| self.clock.now() >= end) {
            return Err(Error::Expired);
        }
        if headers::present(headers, headers::USER) || headers::present(headers, headers::GROUPS) {
            return Ok(Caller::new(acting(key, headers)?, key.expires));
        }
        if !key.subject.scopes.call {
            return Err(Error::Scope("call"));
        }
        Ok(Caller::new(key.subject.clone(), key.expires))
    }
}

/// The subject of a key that acts for the user whom `Tollgate-User` names. The user's groups are only those asserted:
/// the key's own do not pass to him.
fn acting(key: &Key, headers: &HeaderMap) -> Result<Arc<Subject>, Error> {
    let own = &*key.subject;
    if !own.scopes.act_for {
        return Err(Error::Acting(
            "the agent key lacks the scope `act-for`".to_owned(),
        ));
    }
    let Some(user) = headers::text(headers, headers::USER)? else {
        return Err(Error::Acting(
            "`Tollgate-Groups` stands without `Tollgate-User`".to_owned(),
        ));
    };
    if !key
        .may_act_for
        .iter()
        .any(|may| &**may == "*" || &**may == user)
    {
        return Err(Error::Acting(format!(
            "the agent key may not act for `{user}`"
        )));
    }
    let groups = headers::groups(headers)?;
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
    let key_like = scheme.eq_ignore_ascii_case(b"bearer ")
        && token.starts_with(PREFIX)
        && token.len() <= MAX_KEY
        && token.iter().all(u8::is_ascii_graphic);
    key_like.then_some(token).ok_or(Error::NotAKey)
}
