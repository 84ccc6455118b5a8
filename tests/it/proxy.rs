//! The forward proxy over real sockets: who gets where, what is refused, and the records of it.

mod bounds;
mod bytes;
mod corpus;
mod plain;
mod refused;
mod reload;
mod tunnels;
mod who;
