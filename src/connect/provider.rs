//! What is read of authorization servers and said to them, one request at a time: nothing is kept here, and nothing that
//! is kept is looked at.

pub mod challenge;
pub mod discovery;
mod document;
mod fetch;
mod issuer;
pub(super) mod metadata;
pub(super) mod pkce;
pub mod register;
pub(super) mod resource;
pub mod revoke;
pub(super) mod scopes;
pub mod token;
