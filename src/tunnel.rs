//! Owns: what a client of the forward proxy says before anything is forwarded: request head, credential, TLS ClientHello.
//! Imports: layers 0–3.
//! Never: forwards a byte that two readers could read differently, keeps a credential, or shows one.
//! Fails as: [`HeadError`], [`CredentialError`] and [`HelloError`].

mod basic;
mod head;
mod hello;
mod plain;

pub use basic::{Credential, CredentialError};
pub use head::{Body, Head, HeadError, Heads};
pub use hello::{Hello, HelloError, HelloReader};
pub use plain::{Bounds, Forwarded, Next, PlainError, Source, forward};
