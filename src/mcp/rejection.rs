//! A message that is refused, with what its answer needs beside the refusal.

use super::scan::ScanError;
use crate::refusal::{Code, Refusal};

/// A refusal of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Why.
    pub refusal: Refusal,
    /// The JSON text of the id to echo, where it could be read.
    pub id: Option<Box<str>>,
    /// The protocol version that was asked for, with [`Code::VersionUnsupported`] and [`Code::UpstreamEra`].
    pub requested: Option<Box<str>>,
}

impl Rejection {
    /// A refusal that echoes no id.
    pub fn new(code: Code, public: impl Into<String>) -> Self {
        Refusal::new(code, public).into()
    }

    /// The same, echoing the id with this JSON text.
    #[must_use]
    pub fn with_id(mut self, id: Option<&str>) -> Self {
        self.id = id.map(Box::from);
        self
    }
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Self {
            refusal,
            id: None,
            requested: None,
        }
    }
}

impl From<ScanError> for Rejection {
    fn from(error: ScanError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
