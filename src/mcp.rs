//! Owns: the language: envelope, revision, headers, methods, SSE, JSON-RPC errors.
//! Imports: layer 0.
//! Never: does I/O, or turns params or results into values on the hot path.
//! Fails as: [`Rejection`], which is a [`crate::refusal::Refusal`] with the id to answer; the scan as [`scan::ScanError`].

pub mod canonical;
pub mod capabilities;
pub mod envelope;
pub mod greeting;
pub mod headers;
mod input_required;
pub mod items;
mod methods;
pub mod mirrors;
pub mod pretty;
mod rejection;
pub mod reply;
mod revision;
pub mod scan;
pub mod sse;
pub mod tools;
pub mod visible;

pub use envelope::{Envelope, Id, Kind, Meta, Params};
pub use input_required::{InputError, InputRequired, MAX_QUESTIONS, wanted_pages};
pub use methods::{Method, News, Question};
pub use rejection::Rejection;
pub use revision::{Era, Revision};
