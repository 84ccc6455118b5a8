//! The body of a request, taken from what its client sent.

use bytes::{Bytes, BytesMut};

use super::{Fault, Framing, chunked::Chunked};

/// Where in the body of a request its reader stands. Chunks are read more strictly than those of servers are.
#[derive(Debug)]
pub struct Incoming(Framing);

impl Incoming {
    /// A body of so many bytes, which may be none.
    pub fn of_length(length: u64) -> Self {
        Self(Framing::Length(length))
    }

    /// A body in chunks (RFC 9112, section 7.1). Extensions and trailers are dropped.
    pub fn chunked() -> Self {
        Self(Framing::Chunked(Chunked::of_request()))
    }

    /// Whether all of it was taken.
    pub fn is_ended(&self) -> bool {
        self.0.is_ended()
    }

    /// Takes what is there of it from the front of `input`; empty where more has to be read, or at its end. What follows
    /// the body stays.
    ///
    /// # Errors
    ///
    /// [`Fault::Chunks`]; the connection is of no use then.
    pub fn take(&mut self, input: &mut BytesMut) -> Result<Bytes, Fault> {
        self.0.take(input)
    }
}
