//! HTTP/1.1 towards servers (RFC 9112), read strictly: lines end in CRLF, and where a message ends is never in doubt.

mod chunked;
mod fields;
mod framing;
mod incoming;
mod response;

use std::io;

pub use fields::Fields;
pub use framing::digits;
pub(super) use framing::{Framing, length, only_chunked};
pub use incoming::Incoming;
pub(super) use response::Heads;

/// The most bytes of a head, interim ones counted with it.
const MAX_HEAD: usize = 64 * 1024;

/// Why a connection has no response, or not the whole of one.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It closed before a response was there.
    #[error("it was closed")]
    Closed,
    /// It closed within a response.
    #[error("it was closed in the middle of the response")]
    Cut,
    /// It carried bytes that nobody had asked for.
    #[error("the server spoke unasked")]
    Unasked,
    /// It broke.
    #[error("it broke")]
    Io(#[from] io::Error),
    /// What stands there is no head of a response.
    #[error("the head is malformed")]
    Head(#[from] httparse::Error),
    /// The head is too long.
    #[error("the head is longer than {MAX_HEAD} bytes")]
    LongHead,
    /// Readers could disagree about what the head says, or about where the response ends.
    #[error("the response is ambiguous: {0}")]
    Ambiguous(&'static str),
    /// The chunked coding is broken (RFC 9112, section 7.1).
    #[error("the chunks are malformed: {0}")]
    Chunks(&'static str),
}

impl Fault {
    /// Whether a head came that cannot be used.
    pub(super) fn is_head(&self) -> bool {
        matches!(self, Self::Head(_) | Self::LongHead | Self::Ambiguous(_))
    }
}
