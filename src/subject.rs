//! Owns: the plain facts about who acts, and whose things are touched.
//! Imports: no room.
//! Never: proves anything; `identity` alone turns evidence into a `Caller`.
//! Fails as: nothing.

use std::sync::Arc;

/// The tenant of an installation that has only one.
pub const DEFAULT_TENANT: &str = "default";

/// What a credential may be used for (design: identity, `keys`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes {
    /// List and call tools.
    pub call: bool,
    /// Act for a named user of its tenant.
    pub act_for: bool,
    /// Answer approvals for users it may act for.
    pub decide: bool,
    /// Vouch for a signed-in browser user.
    pub vouch: bool,
}

impl Scopes {
    /// The scope of an ordinary agent key.
    pub const CALL: Self = Self {
        call: true,
        act_for: false,
        decide: false,
        vouch: false,
    };
}

/// Who acts: what policy judges and what records name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The wall: nothing crosses from one tenant to another.
    pub tenant: Arc<str>,
    /// The calling process, as its credential names it.
    pub agent: Arc<str>,
    /// The person on whose behalf the agent acts.
    pub user: Arc<str>,
    /// Groups of the user, each within `tenant`.
    pub groups: Arc<[Arc<str>]>,
    /// What the credential may be used for.
    pub scopes: Scopes,
    /// The agent's word for the conversation; no permission crosses users because of it.
    pub conversation: Option<Arc<str>>,
    /// The agent's word for the turn within the conversation.
    pub turn: Option<Arc<str>>,
    /// The key or app that acts for `user`, where it is not the user's own.
    pub acting: Option<Arc<str>>,
    /// A stable, public name of the evidence presented (never the evidence): sessions are bound to it.
    pub evidence: Arc<str>,
}

impl Subject {
    /// Whose connections, tokens and caches a call may touch.
    pub fn owner(&self) -> Owner {
        Owner {
            tenant: self.tenant.clone(),
            user: self.user.clone(),
        }
    }
}

/// The holder of connections and credentials: a user within a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The tenant.
    pub tenant: Arc<str>,
    /// The user within it.
    pub user: Arc<str>,
}

/// Who administers, as `[identity] admins` names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admins {
    /// Users, of any tenant.
    pub users: Vec<Arc<str>>,
    /// Groups whose members administer; only groups from a source the operator configured count.
    pub groups: Vec<Arc<str>>,
}

impl Admins {
    /// Whether `subject` is named. Groups that a key asserts for someone it acts for never count.
    pub fn include(&self, subject: &Subject) -> bool {
        let vouched = subject.acting.is_none();
        self.users.contains(&subject.user)
            || vouched
                && subject
                    .groups
                    .iter()
                    .any(|group| self.groups.contains(group))
    }
}
