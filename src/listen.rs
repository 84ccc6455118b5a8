//! Owns: the front door: sockets, TLS, limits, `Host` and `Origin`, routing, and the end of connections.
//! Imports: layers 0–4.
//! Never: reads a body before it knows the caller, or speaks JSON-RPC beyond the envelope of a refusal.
//! Fails as: [`Error`] at start; each request as a [`crate::refusal::Refusal`] with a record.

mod accept;
mod agents;
mod answer;
mod body;
mod connection;
mod error;
mod gate;
mod hush;
mod limits;
mod ops;
mod origin;
mod proxy;
mod record;
mod socket;
mod tls;
mod watch;

pub use accept::{Lobby, accept};
pub use agents::{Agents, Door, Terms};
pub use connection::{Handle, Peer, Serve};
pub use error::Error;
pub use limits::{Limits, descriptors};
pub use ops::{Health, Ops};
pub use origin::Origins;
pub use record::Recorder;
pub(crate) use socket::unix;
pub use socket::{Bound, Socket};
pub use tls::Tls;
