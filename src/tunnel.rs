//! Owns: one connection of a client of the forward proxy, from its first byte to its last: request heads, credential,
//! verdict, tunnel.
//! Imports: layers 0–3.
//! Never: forwards a byte that two readers could read differently or that comes before the verdict, keeps a credential, or
//! shows one.
//! Fails as: [`HeadError`], [`CredentialError`] and [`HelloError`], told to the client and recorded.

mod again;
mod answer;
mod basic;
mod client;
mod connect;
mod head;
mod hello;
mod open;
mod plain;
mod proxy;
mod record;
mod relay;
mod request;
mod shared;
mod visit;

pub use basic::{Credential, CredentialError};
pub use head::{Body, Head, HeadError, Heads};
pub use hello::{Hello, HelloError, HelloReader};
pub use open::OpenTunnel;
pub use plain::{Bounds, Forwarded, Next, PlainError, Source, forward};
pub use proxy::{Proxy, Timeouts};
pub use shared::Shared;
