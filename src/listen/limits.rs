//! What a connection and a request may take.

use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Bounds of a listener; nothing at the door is without one.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections over all workers.
    pub connections: usize,
    /// TLS handshake, and each request head from its first byte (the first head: from the connection).
    pub head: Duration,
    /// An open connection between two requests.
    pub idle: Duration,
    /// A client that does not take what is written to it.
    pub stall: Duration,
}

impl Limits {
    /// Bytes of a request head, request line included.
    pub const HEAD_BYTES: usize = 64 * 1024;
    /// Bytes of all request bodies that are read or not yet answered, over all workers.
    pub const BODIES: usize = 64 * 1024 * 1024;
    /// How long a whole request body may take.
    pub const BODY: Duration = Duration::from_secs(30);
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            stall: Duration::from_secs(30),
        }
    }
}

/// Raises the soft limit of open files to the hard one and returns it. Each call may need two descriptors.
pub fn descriptors() -> usize {
    const UNKNOWN: usize = 1024;
    let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return UNKNOWN;
    };
    let raised = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    let soft = raised.and_then(|()| getrlimit(Resource::RLIMIT_NOFILE));
    soft.map_or(UNKNOWN, |(soft, _)| {
        usize::try_from(soft).unwrap_or(usize::MAX)
    })
}
