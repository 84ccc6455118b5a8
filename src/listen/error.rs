//! Why a listener could not start.

use std::{io, path::PathBuf};

use crate::refusal::Code;

/// A listener that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has the address.
    #[error("address `{0}` is in use; stop the other process or choose another port")]
    InUse(String),
    /// The operating system said no.
    #[error("cannot listen on `{address}`")]
    Bind {
        /// The address, as configured.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// A unix path that the kernel cannot hold.
    #[error("socket path `{}` is longer than the {max} bytes that the kernel allows; choose a shorter folder", path.display())]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// The longest path.
        max: usize,
    },
    /// Something that is no socket stands where the socket belongs.
    #[error("`{}` exists and is no socket; move it away or choose another path", .0.display())]
    NotASocket(PathBuf),
    /// A certificate or key that TLS cannot use.
    #[error("listen.tls: {0}")]
    Tls(String),
}

impl Error {
    /// The code under which logs and metrics count it.
    pub fn code(&self) -> Code {
        match self {
            Self::Tls(_) => Code::TlsFailed,
            _ => Code::ListenFailed,
        }
    }
}
