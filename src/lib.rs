//! Tollgate: a sidecar MCP gateway and egress proxy.
//!
//! The rooms below stand in the order of a call: read them from top to bottom and you have read its path.
//!
//! | layer | rooms | may import |
//! |---|---|---|
//! | 6 | `main`, `cli`, `app` | everything |
//! | 5 | `listen`, `web`, `store`, `demo` | layers 0–4 |
//! | 4 | `gateway`, `tunnel` | layers 0–3, not one another |
//! | 3 | `upstream`, `connect`, `approval`, `identity` | layers 0–2, not one another |
//! | 2 | `egress`, `catalog`, `budget`, `audit`, `vault` | layers 0–1, not one another; `egress` takes `audit`'s proof types |
//! | 1 | `policy`, `address`, `mcp`, `config` | layer 0; `policy` also `address`; no I/O |
//! | 0 | `refusal`, `subject`, `clock`, `id`, `deadline`, `memory`, `private`, `secret`, `table`, `telemetry` | no room |
//!
//! `tests/it/layers.rs` holds this table against the real paths.

pub mod cli;
// The composition root.
pub mod app;
// Front door: accept, TLS, limits, routing, drain.
pub mod listen;
// Who: evidence on a request becomes a caller.
pub mod identity;
// Language: envelope, revision, headers, SSE (pure).
pub mod mcp;
// One call: the pipeline, from top to bottom.
pub mod gateway;
// One flow: the forward proxy, from a head to the last byte.
pub mod tunnel;
// May: files become a checked snapshot; decide (pure).
pub mod policy;
// Where: target, host, the table of ranges, the judge (pure).
pub mod address;
// Pins: what was reviewed of a server, and what it shows of that.
pub mod catalog;
// Ask: consent to a side effect.
pub mod approval;
// OAuth: each user's connections to servers, and their tokens kept fresh.
pub mod connect;
// Keep: the keyring, and what only this gateway opens again.
pub mod vault;
// Speak: MCP over HTTP towards tool servers.
pub mod upstream;
// Way out: resolve, dial, TLS, pool, send, body.
pub mod egress;
// How much: what of a result reaches a caller, and the rest of it for a while.
pub mod budget;
// Record: event, chain, journal.
pub mod audit;
// Browser: the pages of people: sign in, connect, disconnect.
pub mod web;
// Disk: the database, for the traits that other rooms own.
pub mod store;
// Show: the bundled tool server.
pub mod demo;
// Watch: logs and metrics.
pub mod telemetry;
// Deployment settings.
pub mod config;

pub mod clock;
pub mod deadline;
pub mod id;
pub mod memory;
pub mod private;
pub mod refusal;
pub mod secret;
pub mod subject;
pub mod table;
