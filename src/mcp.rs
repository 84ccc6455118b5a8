//! Owns: the language: envelope, revision, headers, methods, SSE, JSON-RPC errors.
//! Imports: layer 0.
//! Never: does I/O, or turns params or results into values on the hot path.
//! Fails as: [`crate::refusal::Refusal`].
