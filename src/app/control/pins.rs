//! What the control socket tells of pins, and takes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Which items are accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// Everything that was seen.
    All,
    /// What has these names, of whatever kind; `NAME@DIGEST`, 16 digits or more, only if its SHA-256 begins so.
    Tools(Vec<String>),
}

/// What is pinned of a server, and what it was seen to show.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pins {
    /// The server.
    pub server: String,
    /// `first-use` or `file`.
    pub pin: String,
    /// The version of the pins; 0 where nothing is pinned.
    pub version: u64,
    /// An operator accepted something: first use is over.
    pub reviewed: bool,
    /// By kind and name.
    pub items: Vec<Row>,
    /// The server was not asked, since it wants a user's credential; what was seen is what callers were shown.
    pub unasked: bool,
    /// Why the server could not be read just now; what was seen is then what callers were shown.
    pub unread: Option<String>,
}

/// How an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it was pinned.
    Pinned,
    /// Another definition is pinned under its name.
    Drifted,
    /// Nothing is pinned under its name.
    New,
    /// Pinned, and not shown: no drift, since servers show some callers less than others.
    Absent,
}

/// One item.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// `tool`, `prompt`, `template` or `instructions`.
    pub kind: String,
    /// Its name; empty for instructions.
    pub name: String,
    /// How it stands.
    pub state: State,
    /// The version at which what is pinned was accepted.
    pub version: Option<u64>,
    /// Whether the newest definition says `readOnlyHint`.
    pub read_only_hint: bool,
    /// Whether the pinned tool counts as read-only by the policy that holds.
    pub read_only: bool,
    /// What deserves a second look.
    pub suspicions: Vec<String>,
    /// The definition that is pinned, where another was seen.
    pub pinned: Option<Definition>,
    /// The definition that was seen, where it is not pinned.
    pub seen: Option<Definition>,
}

/// A definition and its digest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Definition {
    /// SHA-256 of the canonical form, in hexadecimal digits.
    pub sha256: String,
    /// The canonical form.
    pub definition: Box<RawValue>,
}

/// What was accepted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Accepted {
    /// The version of the pins now.
    pub version: u64,
    /// What was not pinned before.
    pub items: Vec<AcceptedItem>,
    /// What the pins file is to say, where pins are in a file.
    pub file: Option<PinsFile>,
}

/// One item that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedItem {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// SHA-256 of its definition.
    pub sha256: String,
}

/// A pins file that the command line is to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinsFile {
    /// The policy folder of the process.
    pub folder: PathBuf,
    /// The whole text.
    pub text: String,
}
