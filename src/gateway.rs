//! Owns: one call, from a known caller to its answer.
//! Imports: layers 0–3.
//! Never: opens a socket, or answers before the record is kept.
//! Fails as: [`crate::refusal::Refusal`].

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{identity::Caller, policy::Snapshot};

/// A request whose caller is known and whose body is read.
#[derive(Debug)]
pub struct Ask {
    /// Who asks.
    pub caller: Caller,
    /// The policy that the caller was found in; it decides the whole request.
    pub policy: Arc<Snapshot>,
    /// The server that the path names.
    pub server: Arc<str>,
    /// The head.
    pub head: http::request::Parts,
    /// The body, whole.
    pub body: Bytes,
    /// When the head was read.
    pub started: Instant,
    /// The request, as records name it.
    pub request_id: Uuid,
}
