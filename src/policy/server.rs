//! A registered tool server, compiled from `servers/NAME.toml`.

use std::{collections::HashMap, sync::Arc, time::Duration};

use crate::address::Target;

/// Which protocol era a server is spoken to in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// Found out by asking.
    #[default]
    Auto,
    /// 2026-07-28 and later, stateless.
    Modern,
    /// The session protocol.
    Legacy,
}

/// Who may use a server, before tenants are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Those named in `[identity] admins`, and the local user.
    #[default]
    Admins,
    /// Every authenticated caller of its tenants.
    Everyone,
}

/// The `approval` of a `[tools.NAME]` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Ask, unless a standing permission exists.
    Ask,
    /// Ask every time.
    AlwaysAsk,
    /// Run unasked, as a side effect.
    Never,
}

/// A tool name pattern: literal characters and `*` (any run of characters).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Arc<str>);

/// What a file says about one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOverride {
    /// `approval`.
    pub approval: Option<Approval>,
    /// `hidden`.
    pub hidden: bool,
}

/// Bounds of a server's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// The whole call.
    pub call: Duration,
    /// Until the connection stands.
    pub connect: Duration,
    /// From the last byte of the request to the first of the answer.
    pub first_byte: Duration,
    /// Between two pieces of an open stream.
    pub idle: Duration,
    /// Bytes of an answer read at most, after decoding.
    pub response_bytes: usize,
}

/// Extra roots of a server: the PEM texts, and a digest that keys pooled connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// PEM texts of the `ca` files, in order.
    pub roots: Vec<Arc<str>>,
    /// SHA-256 over them; all zero where there are none.
    pub digest: [u8; 32],
}

/// Why a call may run without asking a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unasked {
    /// The operator accepted the tool as read-only.
    ReadOnly,
    /// The file says `approval = "never"`; it still counts as a side effect.
    Never,
}

/// A registered server.
#[derive(Debug)]
pub struct Server {
    /// The file's name.
    pub name: Arc<str>,
    /// What people are shown.
    pub title: Option<Arc<str>>,
    /// Scheme, host and port.
    pub target: Target,
    /// Path and query, exactly as registered; begins with `/`.
    pub path: Arc<str>,
    /// Who may use it.
    pub access: Access,
    /// Tenants whose callers may see it.
    pub tenants: Vec<Arc<str>>,
    /// Tools accepted as read-only.
    pub read_only: Vec<Pattern>,
    /// The era to speak.
    pub era: Era,
    /// Extra roots.
    pub trust: Trust,
    /// Per-tool settings.
    pub tools: HashMap<Arc<str>, ToolOverride>,
    /// Bounds.
    pub limits: ServerLimits,
}
