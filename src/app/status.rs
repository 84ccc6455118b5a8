//! What `tollgate status` tells.

use serde::{Deserialize, Serialize};

use crate::connect::SharedSecret;

/// The state of a running process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// The process.
    pub pid: u32,
    /// The user it runs as.
    pub uid: u32,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// Worker threads.
    pub workers: usize,
    /// Whether it finishes what runs and takes nothing new.
    pub draining: bool,
    /// What keeps it from being ready, if anything.
    pub obstacle: Option<String>,
    /// Where it listens.
    pub listeners: Vec<ListenerStatus>,
    /// The policy in force.
    pub policy: PolicyStatus,
    /// How callers are told apart: `local` or `keys`.
    pub identity: String,
    /// The records.
    pub records: RecordsStatus,
    /// The vault.
    #[serde(default)]
    pub vault: VaultStatus,
    /// Connections of users that wait for them: to be connected again, or to have another secret entered.
    #[serde(default)]
    pub waiting: usize,
    /// Secrets of the operator's that cannot be used.
    #[serde(default)]
    pub secrets: Vec<SharedSecret>,
    /// Servers that are out of reach, to which requests are refused for a while.
    #[serde(default)]
    pub failing: Vec<FailingStatus>,
    /// What this installation does not protect against.
    pub caution: String,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListenerStatus {
    /// `agents`, `egress` or `ops`.
    pub name: String,
    /// `IP:PORT` or `unix:PATH`.
    pub address: String,
    /// Whether it speaks TLS.
    pub tls: bool,
}

/// The policy in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyStatus {
    /// The folder it was read from, as an absolute path.
    pub folder: String,
    /// Rises with every change that took effect.
    pub generation: u64,
    /// Registered servers.
    pub servers: usize,
    /// Agent keys.
    pub keys: usize,
    /// Whether servers are offered only to those who are connected to them.
    #[serde(default)]
    pub connected_only: bool,
    /// The faults of a newer state of the folder, which was not taken.
    pub rejected: Vec<String>,
    /// Changed settings that wait for a restart.
    pub restart: Vec<String>,
}

/// The records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordsStatus {
    /// The folder.
    pub folder: String,
    /// Why records cannot be kept, if they cannot.
    pub failure: Option<String>,
    /// Records that wait for the disk.
    pub waiting: usize,
    /// The number of the last record on disk.
    pub seq: u64,
}

/// The vault.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VaultStatus {
    /// The keyring.
    pub keyring: String,
    /// Whether it is sealed; else the mode of its file alone guards it.
    pub sealed: bool,
    /// The data key that seals.
    pub primary: String,
    /// Whether the database is older than one that was in use here, so that connections are refused.
    pub older: bool,
}

/// A server that is out of reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailingStatus {
    /// The server.
    pub server: String,
    /// The user whose requests it did not answer; `None` where nobody can connect to it.
    pub user: Option<String>,
    /// Seconds since the first failure.
    pub since_s: u64,
    /// Seconds until the next try; 0 while one is made, or due.
    pub retry_s: u64,
}

/// The sentence about what a process of the same user can do, for banner and status.
pub fn caution(uid: u32) -> String {
    format!(
        "cooperative mode: an agent that runs as uid {uid} can read this process's files and open sockets of its own; \
         deploy/README.md shows how to separate them"
    )
}
