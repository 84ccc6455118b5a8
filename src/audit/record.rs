//! The record: one JSON object a line (design: interfaces, record).

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use uuid::Uuid;

use crate::{id, refusal::Code, subject::Subject};

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tool call.
    Call,
    /// A listing.
    List,
    /// Any other request, malformed ones included.
    Request,
    /// A request to the forward proxy: its verdict, and what came of it.
    Egress,
    /// A connection of a person to a server: begun, made, refused, ended.
    Connect,
    /// A token or secret: sealed, refreshed, revoked, found changed.
    Credential,
    /// A change of what is pinned of a server, or something that is not as it was pinned.
    Catalog,
    /// A policy that was loaded or refused.
    Policy,
    /// Start, drain, stop.
    Lifecycle,
    /// Something an administrator did through the control socket.
    Admin,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Call,
        Self::List,
        Self::Request,
        Self::Egress,
        Self::Connect,
        Self::Credential,
        Self::Catalog,
        Self::Policy,
        Self::Lifecycle,
        Self::Admin,
    ];

    /// The text in a record, and the metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::List => "list",
            Self::Request => "request",
            Self::Egress => "egress",
            Self::Connect => "connect",
            Self::Credential => "credential",
            Self::Catalog => "catalog",
            Self::Policy => "policy",
            Self::Lifecycle => "lifecycle",
            Self::Admin => "admin",
        }
    }
}

/// Where in its life the recorded thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// About to be sent.
    Intent,
    /// Over.
    Outcome,
    /// Decided, with nothing to follow.
    Decision,
}

impl Phase {
    /// The text in a record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Outcome => "outcome",
            Self::Decision => "decision",
        }
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeKind {
    /// It was let through and answered.
    Allowed,
    /// It was refused.
    Refused,
    /// It was let through and failed.
    Failed,
    /// It was let through by a rule that only reports, and would be refused without that.
    WouldRefuse,
}

impl OutcomeKind {
    /// The text in a record, and the metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::WouldRefuse => "would_refuse",
        }
    }
}

/// Where a request went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordTarget {
    /// The host as registered.
    pub host: Arc<str>,
    /// The port.
    pub port: u16,
    /// The judged answer.
    pub addresses: Vec<IpAddr>,
    /// Whether the addresses were judged; `None` before anything was resolved.
    pub pinned: Option<bool>,
}

/// What went through a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordTunnel {
    /// Bytes from the target to the client.
    pub bytes_in: u64,
    /// Bytes from the client to the target.
    pub bytes_out: u64,
    /// Who or what closed it: `client`, `target`, `policy`, `credential`, `drain`, or the bound that was reached.
    pub closed_by: &'static str,
}

/// A record before the journal adds `seq`, `prev` and `hash`. What is absent is left out of the line.
///
/// Texts may be an attacker's: each is cut at 256 characters, lists at 32 entries (groups at 64), and invisible
/// characters are written as escapes. There is no field that could hold a credential or an argument's value.
#[derive(Clone, Debug)]
pub struct Record {
    /// UUIDv7.
    pub id: Uuid,
    /// Wall time.
    pub time: SystemTime,
    /// What it is about.
    pub kind: Kind,
    /// Where it stands.
    pub phase: Phase,
    /// How it ended; absent on an intent.
    pub outcome: Option<OutcomeKind>,
    /// The code of a refusal or failure.
    pub code: Option<Code>,
    /// Who acted; absent where that was never found out.
    pub subject: Option<Arc<Subject>>,
    /// The server.
    pub server: Option<Arc<str>>,
    /// The JSON-RPC or HTTP method; on `policy`, `lifecycle` and `admin` records, what happened.
    pub method: Option<Cow<'static, str>>,
    /// The tool, prompt or resource.
    pub tool: Option<Arc<str>>,
    /// The policy generation that decided.
    pub generation: Option<u64>,
    /// Names of the rules that decided.
    pub rules: Vec<Arc<str>>,
    /// Where it went.
    pub target: Option<RecordTarget>,
    /// Bytes of the arguments.
    pub args_bytes: Option<usize>,
    /// Top-level keys of the arguments, at most 32, each cut at 64 characters.
    pub args_keys: Vec<String>,
    /// Bytes of the result.
    pub result_bytes: Option<usize>,
    /// Bytes of the result that were left out.
    pub result_cut: Option<usize>,
    /// Whether the result says `isError`.
    pub result_is_error: Option<bool>,
    /// What went through a tunnel, once that is over.
    pub tunnel: Option<RecordTunnel>,
    /// What a provider made of a connection that ended: `yes`, `no` or `unsupported`.
    pub revoked_upstream: Option<&'static str>,
    /// How many alike it stands for; absent is one.
    pub times: Option<u64>,
    /// How long it took in all; written as milliseconds with three decimals.
    pub took: Option<Duration>,
    /// The upstream's part of that.
    pub took_upstream: Option<Duration>,
    /// The intent that this outcome belongs to, or the request both belong to.
    pub request_id: Option<Uuid>,
}

impl Record {
    /// A record of `now` with an id of its own and nothing else known.
    pub fn new(now: SystemTime, kind: Kind, phase: Phase) -> Self {
        Self {
            id: id::ordered(now),
            time: now,
            kind,
            phase,
            outcome: None,
            code: None,
            subject: None,
            server: None,
            method: None,
            tool: None,
            generation: None,
            rules: Vec::new(),
            target: None,
            args_bytes: None,
            args_keys: Vec::new(),
            result_bytes: None,
            result_cut: None,
            result_is_error: None,
            tunnel: None,
            revoked_upstream: None,
            times: None,
            took: None,
            took_upstream: None,
            request_id: None,
        }
    }

    /// Something that happened to the process itself: `start`, `drain`, `stop`.
    pub fn lifecycle(now: SystemTime, event: &'static str) -> Self {
        let mut record = Self::new(now, Kind::Lifecycle, Phase::Decision);
        record.method = Some(event.into());
        record
    }

    /// Names who acted.
    #[must_use]
    pub fn by(mut self, subject: Arc<Subject>) -> Self {
        self.subject = Some(subject);
        self
    }

    /// Says how it ended, with the code of a refusal or failure.
    #[must_use]
    pub fn ended(mut self, outcome: OutcomeKind, code: Option<Code>) -> Self {
        self.outcome = Some(outcome);
        self.code = code;
        self
    }
}
