//! Why Tollgate could not start.

use std::{io, path::PathBuf};

use crate::{audit, egress, listen, refusal::Code, store, table::Fault, vault};

/// A start that failed; nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The files have faults.
    #[error("the configuration has {} faults; correct them, and run `tollgate check`", .0.len())]
    Config(Vec<Fault>),
    /// The state folder cannot be made.
    #[error("cannot make `{}`; set state_dir to a folder that this user may write", path.display())]
    State {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others could replace what stands in the state folder.
    #[error("the state folder is not safe: {0}")]
    LooseState(String),
    /// Another process answers on the control socket of this state.
    #[error("a tollgate already runs with state_dir `{}`; end it with `tollgate drain`, or give this one a state_dir of its own", .0.display())]
    Running(PathBuf),
    /// A listener or the control socket cannot be opened.
    #[error("cannot open the {name} listener")]
    Listen {
        /// `agents`, `egress`, `ops` or `control`.
        name: &'static str,
        /// Why.
        source: listen::Error,
    },
    /// Records cannot be kept, so nothing may run.
    #[error("cannot keep records")]
    Records(#[from] audit::OpenError),
    /// What is given out sealed could not be opened again.
    #[error("cannot use the keyring")]
    Keyring(#[from] vault::Error),
    /// What is sealed in the database could not be opened with a new one.
    #[error(
        "there is no keyring at `{}`, and the database `{}` is in use; restore the keyring that belongs to it. Nothing was \
         changed. If that is lost: `tollgate vault reset --forget-all`", keyring.display(), database.display()
    )]
    NoKeyring {
        /// Where the keyring should be.
        keyring: PathBuf,
        /// The database.
        database: PathBuf,
    },
    /// The keyring was not changed.
    #[error("{0}")]
    Keys(String),
    /// What is pinned cannot be read or kept.
    #[error("cannot use the database")]
    Store(#[from] store::Error),
    /// Nobody can be asked for addresses.
    #[error("cannot resolve names")]
    Dns(#[from] egress::DnsSetupError),
    /// The machine refuses a thread or a runtime.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// Records that waited at the end could not be written.
    #[error("the last records are lost")]
    Unrecorded(#[source] audit::Unavailable),
}

impl Error {
    /// The code under which it is logged.
    pub fn code(&self) -> Code {
        match self {
            Self::Listen { source, .. } => source.code(),
            Self::Records(error) => error.code(),
            Self::Keyring(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Unrecorded(error) => error.code(),
            Self::NoKeyring { .. } => Code::VaultKey,
            Self::Keys(_) => Code::KeyringUnusable,
            Self::Config(_)
            | Self::State { .. }
            | Self::LooseState(_)
            | Self::Running(_)
            | Self::Dns(_)
            | Self::Thread(_) => Code::StartFailed,
        }
    }
}
