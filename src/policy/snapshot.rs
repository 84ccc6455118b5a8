//! What all files together say, at one moment.

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use ahash::RandomState;

use super::{Proxy, Server};
use crate::{
    address::Rules,
    subject::{Admins, Subject},
};

/// `TOOLS_ACCESS_MODE`: who may use tools at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessMode {
    /// Each server's `access` decides.
    #[default]
    Files,
    /// Admins only, whatever files say.
    Admins,
    /// Every caller may use every server of its tenants.
    AllUsers,
}

/// What one conversation of a caller may have at once, and be told in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Calls that run; 1 is serial.
    pub running: usize,
    /// Calls that wait for one that runs; more are refused.
    pub waiting: usize,
    /// Bytes of all results of a turn together, and of 60 s where no turn is named.
    pub turn_bytes: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            running: 4,
            waiting: 4,
            turn_bytes: 512 << 10,
        }
    }
}

/// An agent key of `keys.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Whom it names, what it may be used for, and the name of the key itself: the beginning of its SHA-256.
    pub subject: Arc<Subject>,
    /// Users it may act for; `*` is every user of its tenant.
    pub may_act_for: Vec<Arc<str>>,
    /// Whether it may assert groups for them.
    pub may_assert_groups: bool,
    /// When it stops working.
    pub expires: Option<SystemTime>,
}

/// A checked policy; never changed, only replaced.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Rises by one with every change that took effect.
    pub generation: u64,
    /// Servers by name; permits share them.
    pub servers: Arc<HashMap<Arc<str>, Arc<Server>, RandomState>>,
    /// Keys by SHA-256.
    pub keys: HashMap<[u8; 32], Arc<Key>, RandomState>,
    /// Who administers.
    pub admins: Admins,
    /// Who may use tools at all.
    pub access_mode: AccessMode,
    /// Bounds of each caller's calls.
    pub calls: CallLimits,
    /// Whether servers are offered only to callers who have a credential for them.
    pub connected_only: bool,
    /// What the forward proxy may do.
    pub proxy: Proxy,
    /// Address rules of every leg.
    pub addresses: Arc<Rules>,
}
