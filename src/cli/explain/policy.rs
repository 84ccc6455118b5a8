//! The policy that explains: what it says about a caller, a server and a tool.

use std::{path::Path, sync::Arc};

use super::{Exit, Failed, question::Question, report::Decision};
use crate::{
    address::{Leg, Rules, Target},
    app::load::{self, Loaded, Loader},
    catalog::{Item, ItemKind, pins_file},
    cli::auth,
    clock::SystemClock,
    config::{self, Method},
    identity::Identity,
    policy::{
        self, Access, AccessMode, Approval, Auth, Head, Permit, Pin, ReadOnly, Server, Snapshot,
        Unasked,
    },
    refusal::Code,
    subject::Subject,
};

/// A policy folder, loaded as a start would.
pub(super) struct Policy(Loaded);

impl Policy {
    /// Loads the folder that `serve` would.
    pub(super) fn load(folder: Option<&Path>) -> Result<Self, Failed> {
        let folder = load::find_folder(folder).map_err(|fault| Failed::new(Exit::Config, fault))?;
        let loaded = Loader::new(folder, load::environment()).load();
        loaded.map(Self).map_err(|faults| Failed {
            exit: Exit::Config,
            lines: faults.iter().map(ToString::to_string).collect(),
        })
    }

    /// The caller that `question` supposes.
    pub(super) fn subject(&self, question: &Question) -> Subject {
        question.subject(&self.0.settings.identity.method)
    }

    /// What to say of somebody whom `question` names, and as whom nobody can call.
    pub(super) fn stranger(&self, question: &Question, subject: &Subject) -> Option<String> {
        let (identity, known) = match &self.0.settings.identity.method {
            Method::Local { user, tenant } => (
                Identity::local(user, tenant),
                format!("every caller is user `{user}` of tenant `{tenant}`"),
            ),
            Method::Keys => (
                Identity::keys(Arc::new(SystemClock)),
                "no key in keys.toml names that user or may act for it".to_owned(),
            ),
        };
        let asked = question.names_somebody();
        (asked && !identity.knows(&subject.owner(), self.snapshot())).then(|| {
            format!(
                "nobody calls as user `{}` of tenant `{}`: {known}; this is what would be decided",
                subject.user, subject.tenant
            )
        })
    }

    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.0.policy
    }

    /// Address rules of every leg.
    pub(super) fn rules(&self) -> &Rules {
        &self.snapshot().addresses
    }

    /// How `server` is shown who calls; `None` where it is not.
    pub(super) fn auth(&self, server: &Server) -> Option<Decision> {
        let shown = match &server.auth {
            Auth::None => return None,
            Auth::Bearer => "a token that each user enters",
            Auth::Header(_) => "the value of a header that each user enters",
            Auth::Shared(_) => "one secret for all callers",
            Auth::OAuth(_) => "a token of each user's own connection",
        };
        let mut reason = format!("calls carry {shown}");
        let settings = auth::settings(&server.auth);
        if !settings.is_empty() {
            reason += &format!("; {}", settings.join(", "));
        }
        if let Some(knobs) = server.auth.oauth() {
            if !knobs.presets.is_empty() {
                reason += &format!("; presets: {}", knobs.presets.join(", "));
            }
            if let Some(url) = self.0.settings.public_url_or_default() {
                reason += &format!("; redirect URI {}", auth::redirect_uri(&url));
            }
        }
        let rule = format!("mode = \"{}\"", server.auth.mode());
        Some(match kept(server) {
            None => Decision::allow("auth", &rule, reason),
            Some(kept) => Decision::depends(
                "auth",
                &rule,
                format!("{reason}; the running process knows {kept}"),
            ),
        })
    }

    /// `[dns]`.
    pub(super) fn dns(&self) -> &config::Dns {
        &self.0.settings.dns
    }

    /// What lets `subject` reach `target`, and the leg on which it does: that of the server which is registered there, or
    /// the proxy. A refusal comes with the leg that address rules would see.
    pub(super) fn reach(
        &self,
        subject: &Subject,
        target: &Target,
        head: Head<'_>,
    ) -> (Result<Decision, Decision>, Leg) {
        match self.server_at(target).filter(|_| !self.is_proxied(target)) {
            None => (self.through_proxy(subject, target, head), Leg::Proxy),
            Some(server) => {
                let (decision, permit) = self.access(subject, server);
                let reached = if permit.is_some() {
                    Ok(decision)
                } else {
                    Err(decision)
                };
                (reached, Leg::Server(server.name.clone()))
            }
        }
    }

    /// The server registered at `target`; of several, the first by name.
    pub(super) fn server_at(&self, target: &Target) -> Option<&Server> {
        let servers = self.snapshot().servers.values();
        servers
            .filter(|server| server.endpoint.target() == target)
            .min_by_key(|server| server.name.clone())
            .map(|server| &**server)
    }

    /// The server of this name.
    pub(super) fn server(&self, name: &str) -> Option<&Server> {
        self.snapshot().servers.get(name).map(|server| &**server)
    }

    /// Whether `subject` may use `server`, in the words of its file.
    pub(super) fn access(&self, subject: &Subject, server: &Server) -> (Decision, Option<Permit>) {
        let access = match (self.snapshot().access_mode, server.access) {
            (AccessMode::Admins, _) => "TOOLS_ACCESS_MODE = admins",
            (AccessMode::AllUsers, _) => "TOOLS_ACCESS_MODE = all-users",
            (AccessMode::Files, Access::Admins) => "access = \"admins\"",
            (AccessMode::Files, Access::Everyone) => "access = \"everyone\"",
        };
        match policy::decide(self.snapshot(), subject, &server.name) {
            Ok(permit) => {
                let reason = format!("user `{}` may use server `{}`", subject.user, server.name);
                (Decision::allow("access", access, reason), Some(permit))
            }
            Err(refusal) => {
                let (rule, why) = if server.tenants.contains(&subject.tenant) {
                    let why = format!("user `{}` is no admin; see [identity] admins", subject.user);
                    (access, why)
                } else {
                    let why = format!("tenant `{}` is not among its tenants", subject.tenant);
                    ("tenants", why)
                };
                let reason = format!("server `{}` is not open to the caller: {why}", server.name);
                (Decision::refuse("access", refusal.code, rule, reason), None)
            }
        }
    }

    /// The refusal of a server that is not there.
    pub(super) fn unknown(&self, name: &str) -> Decision {
        let mut names: Vec<&str> = self.snapshot().servers.keys().map(|name| &**name).collect();
        names.sort_unstable();
        let reason = format!("no server `{name}`; registered: {}", names.join(", "));
        Decision::refuse("access", Code::ServerUnknown, "servers", reason)
    }
}

/// What only the running process knows of the credential that calls carry; `None` where the policy says it all.
fn kept(server: &Server) -> Option<&'static str> {
    if server.auth.is_personal() {
        Some("whether this user has one: see `tollgate connections`")
    } else if server.auth.is_in_vault() {
        Some("whether it is set: see `tollgate secret list`")
    } else {
        None
    }
}

/// Whether a call to `tool` would run.
pub(super) fn tool(permit: &Permit, tool: &str) -> Decision {
    if permit.hidden(tool) {
        let reason = format!("[tools.{tool}] hides it: hidden = true");
        return Decision::refuse("tool", Code::ToolUnknown, "hidden", reason);
    }
    let server = permit.server();
    let pinned = Pinned::of(server, tool);
    if pinned == Pinned::Missing {
        let reason = format!(
            "pins/{name}.json has no tool `{tool}`, and nothing else is offered; if the server shows it, accept it with \
             `tollgate pin {name} --accept {tool}`",
            name = server.name
        );
        return Decision::refuse("tool", Code::Unreviewed, "pin = \"file\"", reason);
    }
    let hints = server.read_only == ReadOnly::Hints;
    match permit.unasked(tool, pinned != Pinned::Effect) {
        Some(Unasked::ReadOnly) if hints && pinned == Pinned::Elsewhere => {
            let reason = format!(
                "`{tool}` runs unasked if its pinned definition says readOnlyHint, and is refused with {} if not; the \
                 running process knows: see `tollgate pin {}`",
                Code::ApprovalUnavailable.as_str(),
                server.name
            );
            Decision::depends("tool", HINTS, reason)
        }
        Some(Unasked::ReadOnly) if hints => {
            let reason = format!(
                "`{tool}` says readOnlyHint in pins/{}.json, so it is accepted as read-only and runs unasked",
                server.name
            );
            Decision::allow("tool", HINTS, reason)
        }
        Some(Unasked::ReadOnly) => {
            let reason = format!("`{tool}` is accepted as read-only and runs unasked");
            Decision::allow("tool", "read_only", reason)
        }
        Some(Unasked::Never) => {
            let reason = format!("`{tool}` runs unasked, as a side effect");
            Decision::allow("tool", "approval = \"never\"", reason)
        }
        None if let Some(asks) = asks(permit, tool) => {
            let reason = format!(
                "[tools.{tool}] approval = \"{asks}\" wins over read_only, and approvals are not available in this \
                 version; remove the key for read_only to decide, or set it to \"never\""
            );
            let rule = format!("[tools.{tool}] approval");
            Decision::refuse("tool", Code::ApprovalUnavailable, &rule, reason)
        }
        None => {
            let reason = format!(
                "`{tool}` is not accepted as read-only and approvals are not available in this version; add it to \
                 read_only if it changes nothing, or set approval = \"never\" in [tools.{tool}]"
            );
            Decision::refuse("tool", Code::ApprovalUnavailable, "approval", reason)
        }
    }
}

/// The rule that accepts hints.
const HINTS: &str = "read_only = \"hints\"";

/// What a pins file says of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pinned {
    /// Nothing: the running process keeps the pins.
    Elsewhere,
    /// Nothing: the tool is not in it.
    Missing,
    /// A definition that does not say `readOnlyHint`, or several of which one does not.
    Effect,
    /// A definition that does.
    ReadOnly,
}

impl Pinned {
    fn of(server: &Server, tool: &str) -> Self {
        let text = match &server.pin {
            Pin::FirstUse => return Self::Elsewhere,
            Pin::File(text) => text.as_deref().unwrap_or_default(),
        };
        let pins = pins_file::read("", &server.name, text).unwrap_or_default();
        match pins.named(ItemKind::Tool, tool) {
            [] => Self::Missing,
            variants if variants.iter().all(Item::read_only_hint) => Self::ReadOnly,
            _ => Self::Effect,
        }
    }
}

/// What the tool's own table says that needs somebody to ask.
fn asks(permit: &Permit, tool: &str) -> Option<&'static str> {
    match permit.server().tools.get(tool)?.approval? {
        Approval::Ask => Some("ask"),
        Approval::AlwaysAsk => Some("always-ask"),
        Approval::Never => None,
    }
}
