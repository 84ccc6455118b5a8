//! Browsers (`web.login = "local"`): a person opens a link that the operator's command line printed, once, and from then
//! on the browser's cookie stands for that person.
//!
//! What is kept of a link or a sign-in is the SHA-256 of its token, whose it is and until when, with a mark over all of
//! it: who writes the database can end a sign-in, and cannot make one or give it to somebody else.

mod error;
mod mark;
mod rows;

use std::{
    collections::BTreeSet,
    ops::Deref,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use sha2::{Digest, Sha256};

pub use error::LoginError;
pub use rows::{Kept, LinkRow, SessionRow, Sessions, SessionsError};

use super::{Caller, Identity};
use crate::{clock::Clock, id, policy::Snapshot, subject::Owner, vault::Mac};

/// How long a link signs in, in seconds.
const LINK: i64 = 5 * 60;
/// How long a browser may be silent, in seconds.
const IDLE: i64 = 8 * 60 * 60;
/// How long a sign-in lasts at most, in seconds.
const LONGEST: i64 = 7 * 24 * 60 * 60;
/// How far what is kept of the last request may lie behind, in seconds: not every request writes.
const BEHIND: i64 = 5 * 60;

/// Makes links, turns each into one sign-in, and knows browsers again; cheap to clone.
#[derive(Clone)]
pub struct Browsers(Arc<Inner>);

struct Inner {
    identity: Identity,
    rows: Arc<dyn Sessions>,
    mac: Mac,
    clock: Arc<dyn Clock>,
}

/// A link that signs one browser in.
#[derive(Clone, PartialEq, Eq)]
pub struct Invitation {
    /// The secret part of the link, 64 hexadecimal digits.
    pub token: String,
    /// Whom it signs in.
    pub owner: Owner,
    /// How long it can be used, in seconds.
    pub lasts: u64,
}

/// A browser that is signed in, as one request showed it.
#[derive(Clone, Debug)]
pub struct Browser {
    caller: Caller,
    digest: [u8; 32],
}

/// A sign-in, as its owner sees it. Times are Unix seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignIn {
    /// Its public name: 16 hexadecimal digits of the digest of its id.
    pub name: String,
    /// When it was made.
    pub since: i64,
    /// When it was last used, to within five minutes.
    pub seen: i64,
    /// When it ends at the latest.
    pub ends: i64,
    /// Whether it is the one that asks.
    pub own: bool,
}

impl Browsers {
    /// Browsers of the people whom `identity` and the policy of the moment know. Rows are marked with `mac`.
    pub fn new(
        identity: Identity,
        rows: Arc<dyn Sessions>,
        mac: Mac,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self(Arc::new(Inner {
            identity,
            rows,
            mac,
            clock,
        }))
    }

    /// Makes a link for a user: the local one, or one that a key names or may act for.
    ///
    /// # Errors
    ///
    /// Nobody is named, nobody of this name is known, or users of several tenants; or the database does not work.
    pub async fn invite(
        &self,
        tenant: Option<&str>,
        user: Option<&str>,
        policy: &Snapshot,
    ) -> Result<Invitation, LoginError> {
        let owner = self.0.whom(tenant, user, policy)?;
        let (token, now) = (id::token(), self.now());
        let row = LinkRow {
            digest: digest(&token),
            owner,
            ends: now + LINK,
            mac: [0; 32],
        };
        let row = row.marked(&self.0.mac);
        self.0.rows.put_link(&row, now).await?;
        Ok(Invitation {
            token,
            owner: row.owner,
            lasts: LINK.unsigned_abs(),
        })
    }

    /// Whom a link would sign in; it can be used after that as before.
    ///
    /// # Errors
    ///
    /// A link that signs nobody in, or a database that does not work.
    pub async fn invited(&self, token: &str, policy: &Snapshot) -> Result<Owner, LoginError> {
        let row = match is_token(token) {
            true => self.0.rows.link(&digest(token)).await?,
            false => None,
        };
        self.judged(row, policy)
    }

    /// Uses a link up: of several who try, one is signed in. The id is the cookie's value.
    ///
    /// # Errors
    ///
    /// As [`Browsers::invited`].
    pub async fn sign_in(
        &self,
        token: &str,
        policy: &Snapshot,
    ) -> Result<(String, Browser), LoginError> {
        let row = match is_token(token) {
            true => self.0.rows.take_link(&digest(token)).await?,
            false => None,
        };
        let owner = self.judged(row, policy)?;
        let (id, now) = (id::token(), self.now());
        let row = SessionRow {
            digest: digest(&id),
            owner,
            made: now,
            seen: now,
            ends: now + LONGEST,
            mac: [0; 32],
        };
        let row = row.marked(&self.0.mac);
        self.0.rows.put_session(&row).await?;
        let browser = self.0.browser(&row, policy).ok_or(LoginError::Link)?;
        Ok((id, browser))
    }

    /// The browser whose cookie holds `id`.
    ///
    /// # Errors
    ///
    /// Nobody's, one that has ended, one whose user the policy no longer knows, a row that was changed, or a database
    /// that does not work.
    pub async fn recognise(&self, id: &str, policy: &Snapshot) -> Result<Browser, LoginError> {
        if !is_token(id) {
            return Err(LoginError::SignedOut);
        }
        let digest = digest(id);
        let found = self.0.rows.session(&digest).await?;
        let row = found.ok_or(LoginError::SignedOut)?;
        if row.digest != digest || !row.holds(&self.0.mac) {
            return Err(LoginError::Forged);
        }
        let now = self.now();
        if now >= row.ends || now >= row.seen + IDLE {
            self.0.rows.remove_session(&digest).await?;
            return Err(LoginError::SignedOut);
        }
        let browser = self.0.browser(&row, policy).ok_or(LoginError::SignedOut)?;
        if now >= row.seen + BEHIND {
            let row = SessionRow { seen: now, ..row }.marked(&self.0.mac);
            // It may have been revoked meanwhile.
            let stands = self.0.rows.see_session(&row).await?;
            return stands.then_some(browser).ok_or(LoginError::SignedOut);
        }
        Ok(browser)
    }

    /// The sign-ins of a browser's user, the newest first.
    ///
    /// # Errors
    ///
    /// The database does not work.
    pub async fn sign_ins(&self, browser: &Browser) -> Result<Vec<SignIn>, LoginError> {
        let now = self.now();
        let rows = self.0.rows.sessions(&browser.caller.owner()).await?;
        let lasting = rows
            .into_iter()
            .filter(|row| now < row.ends && now < row.seen + IDLE);
        let mut sign_ins: Vec<_> = lasting
            .map(|row| SignIn {
                name: name(&row.digest),
                since: row.made,
                seen: row.seen,
                ends: row.ends.min(row.seen + IDLE),
                own: row.digest == browser.digest,
            })
            .collect();
        sign_ins.sort_by_key(|sign_in| std::cmp::Reverse(sign_in.since));
        Ok(sign_ins)
    }

    /// Ends a sign-in of the browser's user, by its public name; its own one too. False where there is none of this name.
    ///
    /// # Errors
    ///
    /// The database does not work.
    pub async fn revoke(&self, browser: &Browser, named: &str) -> Result<bool, LoginError> {
        let rows = self.0.rows.sessions(&browser.caller.owner()).await?;
        match rows.iter().find(|row| name(&row.digest) == named) {
            Some(row) => Ok(self.0.rows.remove_session(&row.digest).await?),
            None => Ok(false),
        }
    }

    /// Ends the browser's own sign-in.
    ///
    /// # Errors
    ///
    /// The database does not work.
    pub async fn sign_out(&self, browser: &Browser) -> Result<(), LoginError> {
        self.0.rows.remove_session(&browser.digest).await?;
        Ok(())
    }

    fn judged(&self, row: Option<LinkRow>, policy: &Snapshot) -> Result<Owner, LoginError> {
        let row = row.ok_or(LoginError::Link)?;
        if !row.holds(&self.0.mac) {
            return Err(LoginError::Forged);
        }
        let known = self.0.identity.person(&row.owner, policy).is_some();
        if self.now() >= row.ends || !known {
            return Err(LoginError::Link);
        }
        Ok(row.owner)
    }

    fn now(&self) -> i64 {
        let since = self.0.clock.now().duration_since(UNIX_EPOCH);
        i64::try_from(since.unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
    }
}

impl Inner {
    /// Whom the operator means.
    fn whom(
        &self,
        tenant: Option<&str>,
        user: Option<&str>,
        policy: &Snapshot,
    ) -> Result<Owner, LoginError> {
        match &self.identity {
            Identity::Local(local) => {
                let own = local.subject().owner();
                let (tenant, user) = (
                    tenant.unwrap_or(&own.tenant).into(),
                    user.unwrap_or(&own.user).into(),
                );
                let meant = Owner { tenant, user };
                if meant == own {
                    return Ok(own);
                }
                let Owner { tenant, user } = meant;
                Err(LoginError::NotLocal { tenant, user })
            }
            Identity::Keys(_) => {
                let user = Arc::from(user.ok_or(LoginError::UserMissing)?);
                let tenants = match tenant {
                    Some(tenant) => BTreeSet::from([Arc::from(tenant)]),
                    None => policy
                        .keys
                        .values()
                        .map(|key| key.subject.tenant.clone())
                        .collect(),
                };
                self.only_one(user, tenants, policy)
            }
        }
    }

    /// The one user of this name in these tenants.
    fn only_one(
        &self,
        user: Arc<str>,
        tenants: BTreeSet<Arc<str>>,
        policy: &Snapshot,
    ) -> Result<Owner, LoginError> {
        let of = |tenant: &Arc<str>| Owner {
            tenant: tenant.clone(),
            user: user.clone(),
        };
        let known = |tenant: &&Arc<str>| self.identity.knows(&of(tenant), policy);
        let found: Vec<_> = tenants.iter().filter(known).cloned().collect();
        match found.as_slice() {
            [tenant] => Ok(of(tenant)),
            [] => Err(LoginError::UserUnknown {
                tenants: Vec::from_iter(tenants),
                user,
            }),
            _ => Err(LoginError::TenantMissing {
                tenants: found,
                user,
            }),
        }
    }

    fn browser(&self, row: &SessionRow, policy: &Snapshot) -> Option<Browser> {
        let mut subject = self.identity.person(&row.owner, policy)?;
        subject.evidence = format!("session:{}", name(&row.digest)).into();
        let ends = Duration::from_secs(u64::try_from(row.ends).ok()?);
        Some(Browser {
            caller: Caller::browser(Arc::new(subject), UNIX_EPOCH + ends),
            digest: row.digest,
        })
    }
}

impl Browser {
    /// Who it stands for.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The SHA-256 of its id: what belongs to this sign-in and no other is bound to it.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

impl Deref for Browser {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

/// A token is looked up by its digest: how long that takes tells nothing of the tokens that there are.
fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn is_token(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn name(digest: &[u8; 32]) -> String {
    id::hex(&digest[..8])
}
