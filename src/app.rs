//! Owns: the composition root: the only place that names real implementations; start, reload, drain, control.
//! Imports: everything.
//! Never: judges a request.
//! Fails as: [`Error`] at start; afterwards each room fails as its own.

mod connect;
mod connections;
pub mod control;
mod core;
mod desk;
mod error;
pub mod keys;
pub mod load;
mod ops;
mod pins;
pub mod reload;
mod running;
mod secrets;
mod start;
pub mod status;
mod vault;
mod web;
mod worker;

pub use error::Error;
pub use running::{Handle, Running};
pub use start::{Options, start};
pub(crate) use worker::dns;
