//! Arguments that a tool has its callers repeat in headers (MCP 2026-07-28, transports, custom headers from tool
//! parameters).

mod check;
mod read;

use http::HeaderName;

use super::scan::ScanError;

/// Mirrored arguments of one tool at most.
const MAX_MIRRORS: usize = 32;
/// Names that lead to one of them at most.
const MAX_DEPTH: usize = 16;
/// Bytes of all these names, and of the headers', at most.
const MAX_BYTES: usize = 4096;

/// The mirrored arguments of one tool, in the order of their paths; no path stands twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirrors(Box<[Mirror]>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mirror {
    /// The names of properties that lead to the value, from the arguments on.
    path: Box<[Box<str>]>,
    /// `mcp-param-` and the name that the annotation gives.
    header: HeaderName,
}

impl Mirrors {
    /// Whether no argument is mirrored.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Why the annotations of a schema cannot be followed; properties are named by their path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// On the root, or reachable otherwise than through `properties`.
    #[error("`x-mcp-header` in `{0}` is not on a property that only `properties` lead to")]
    Place(String),
    /// No `1*tchar`.
    #[error("`x-mcp-header` of `{0}` cannot be part of a header's name")]
    Name(String),
    /// Anything but `string`, `integer` and `boolean`.
    #[error("`x-mcp-header` is on `{0}`, whose `type` is not string, integer or boolean")]
    Type(String),
    /// Two annotations with one name; case does not count.
    #[error("two properties are mirrored to the header `{0}`")]
    SameHeader(HeaderName),
    /// Parsers that take the first and those that take the last disagree about what is mirrored.
    #[error("`{0}` stands twice in one object of an annotated schema")]
    Ambiguous(String),
    /// More than is kept of one tool.
    #[error(
        "more than {MAX_MIRRORS} mirrored properties, {MAX_DEPTH} levels or {MAX_BYTES} bytes of names"
    )]
    TooMuch,
    /// The schema cannot be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
}
