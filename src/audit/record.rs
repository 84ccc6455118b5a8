//! The record: one JSON object a line (design: interfaces, record).

use std::{net::IpAddr, sync::Arc, time::SystemTime};

use uuid::Uuid;

use crate::{refusal::Code, subject::Subject};

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tool call.
    Call,
    /// A listing.
    List,
    /// Any other request, malformed ones included.
    Request,
    /// A policy that was loaded or refused.
    Policy,
    /// Start, drain, stop.
    Lifecycle,
    /// Something an administrator did through the control socket.
    Admin,
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

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeKind {
    /// It was let through and answered.
    Allowed,
    /// It was refused.
    Refused,
    /// It was let through and failed.
    Failed,
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
    /// Whether the address was judged.
    pub pinned: bool,
}

/// A record before the journal adds `seq`, `prev` and `hash`.
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
    /// The JSON-RPC or HTTP method.
    pub method: Option<Arc<str>>,
    /// The tool.
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
    /// Whether the result says `isError`.
    pub result_is_error: Option<bool>,
    /// Milliseconds in all, with µs precision.
    pub ms_total: Option<f64>,
    /// Milliseconds the upstream took.
    pub ms_upstream: Option<f64>,
    /// The intent that this outcome belongs to, or the request both belong to.
    pub request_id: Option<Uuid>,
}
