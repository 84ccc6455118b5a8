//! Where a server is reached, in every form that a request needs, worked out once.

use std::sync::Arc;

use http::{
    HeaderValue,
    uri::{InvalidUri, PathAndQuery},
};

use crate::address::Target;

/// A registered URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    target: Target,
    host: Arc<str>,
    authority: HeaderValue,
    path: PathAndQuery,
}

impl Endpoint {
    /// `path` is the path and query exactly as registered, beginning with `/`.
    ///
    /// # Errors
    ///
    /// It cannot stand in a request line (RFC 9112, section 3.2.1).
    pub fn new(target: Target, path: &str) -> Result<Self, InvalidUri> {
        let authority = HeaderValue::try_from(target.authority())
            .expect("a parsed host is ASCII without control characters");
        Ok(Self {
            host: target.host().to_string().into(),
            authority,
            path: PathAndQuery::try_from(path)?,
            target,
        })
    }

    /// Scheme, host and port.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The host's text.
    pub fn host(&self) -> &Arc<str> {
        &self.host
    }

    /// The value of `Host`: the port is left out where it is the scheme's own.
    pub fn authority(&self) -> &HeaderValue {
        &self.authority
    }

    /// Path and query, exactly as registered.
    pub fn path(&self) -> &PathAndQuery {
        &self.path
    }
}
