//! A registered tool server, compiled from `servers/NAME.toml`.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use ahash::RandomState;

use super::{Auth, Endpoint};

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

impl Pattern {
    /// A pattern; every text is one.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Whether the pattern covers all of `name`.
    pub fn matches(&self, name: &str) -> bool {
        let Some((prefix, rest)) = self.0.split_once('*') else {
            return *self.0 == *name;
        };
        let Some(mut name) = name.strip_prefix(prefix) else {
            return false;
        };
        if rest.is_empty() {
            return true;
        }
        let (middle, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
        for part in middle.split('*') {
            match name.find(part) {
                Some(at) => name = &name[at + part.len()..],
                None => return false,
            }
        }
        name.ends_with(suffix)
    }

    /// Whether every name that `other` covers is covered; its `*` are runs that only a `*` of this one can cover.
    pub(super) fn includes(&self, other: &Self) -> bool {
        self.matches(&other.0)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// `read_only`: which tools the operator accepted as reading only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadOnly {
    /// `"hints"`: those whose pinned definition says `readOnlyHint`.
    Hints,
    /// Those that a pattern covers; none without patterns.
    Patterns(Vec<Pattern>),
}

impl Default for ReadOnly {
    fn default() -> Self {
        Self::Patterns(Vec::new())
    }
}

impl ReadOnly {
    /// Whether a tool of this name counts as read-only; `hinted` is what its pinned definition says.
    pub fn accepts(&self, tool: &str, hinted: bool) -> bool {
        match self {
            Self::Hints => hinted,
            Self::Patterns(patterns) => patterns.iter().any(|pattern| pattern.matches(tool)),
        }
    }
}

/// `pin`: where it is kept what was reviewed of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// In the store: what the server first shows is taken.
    #[default]
    FirstUse,
    /// In `pins/NAME.json` of the policy folder: nothing else is offered. Its text; `None` while there is no such file.
    File(Option<Arc<str>>),
}

/// `mark`: how results say that they are not to be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// By a member of `_meta`.
    #[default]
    Meta,
    /// By a block of text before the others, too.
    Text,
}

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
    /// Bytes of a result that reach the caller at most.
    pub result_bytes: usize,
    /// Calls to the server that run at once, of all callers.
    pub concurrency: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(60),
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(30),
            idle: Duration::from_secs(30),
            response_bytes: 4 << 20,
            result_bytes: 64 << 10,
            concurrency: 16,
        }
    }
}

/// Extra roots of a server: the PEM texts, and a digest that keys pooled connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// PEM texts of the `ca` files, in order.
    pub roots: Vec<Arc<str>>,
    /// SHA-256 over them; all zero where there are none.
    pub digest: [u8; 32],
}

/// What a server may ask of the client, where the client offers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relay {
    /// Questions to the person at the client.
    pub elicitation: bool,
    /// Completions by the client's model.
    pub sampling: bool,
    /// The client's folders.
    pub roots: bool,
}

impl Default for Relay {
    fn default() -> Self {
        Self {
            elicitation: true,
            sampling: false,
            roots: false,
        }
    }
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
#[derive(Debug, PartialEq, Eq)]
pub struct Server {
    /// The file's name.
    pub name: Arc<str>,
    /// What people are shown.
    pub title: Option<Arc<str>>,
    /// Where it is.
    pub endpoint: Endpoint,
    /// Who may use it.
    pub access: Access,
    /// Tenants whose callers may see it.
    pub tenants: Vec<Arc<str>>,
    /// Tools accepted as read-only.
    pub read_only: ReadOnly,
    /// Where its pins are kept.
    pub pin: Pin,
    /// How its results are marked.
    pub mark: Mark,
    /// Whether Tollgate's own tools stand beside the server's.
    pub builtin: bool,
    /// The era to speak.
    pub era: Era,
    /// What is sent to it, and where that comes from.
    pub auth: Auth,
    /// Extra roots.
    pub trust: Trust,
    /// What it may ask of clients.
    pub relay: Relay,
    /// Per-tool settings.
    pub tools: HashMap<Arc<str>, ToolOverride, RandomState>,
    /// Bounds.
    pub limits: ServerLimits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_the_whole_name() {
        let cases = [
            ("get_issue", "get_issue", true),
            ("get_issue", "get_issues", false),
            ("get_*", "get_issue", true),
            ("get_*", "get_", true),
            ("get_*", "forget_issue", false),
            ("*_list", "issue_list", true),
            ("*_list", "issue_list_all", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "ac", false),
            ("a*a", "a", false),
            ("*", "", true),
            ("**", "anything", true),
            ("Get_*", "get_issue", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(
                Pattern::new(pattern).matches(name),
                expected,
                "{pattern} {name}"
            );
        }
    }
}
