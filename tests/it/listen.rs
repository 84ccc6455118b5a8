//! The front door over real sockets: what it lets in, what it refuses, and the record of each refusal.

mod bounds;
mod drain;
pub(crate) mod front;
mod heads;
mod keys;
mod transports;
