//! The gateway end to end: an agent on one socket, a tool server on another, and the whole product between them.

mod ambiguous;
mod arguments;
mod bodies;
mod bytes;
mod connection;
mod conversation;
mod cut;
mod drain;
mod effects;
mod eras;
mod faults;
mod features;
mod floods;
mod gone;
mod idle;
mod input;
mod lanes;
mod late;
mod listening;
mod lists;
mod memory;
mod mirrors;
mod names;
mod odd;
mod parked;
mod pins;
mod questions;
mod quiet;
mod reach;
mod reload;
mod renewal;
mod results;
mod resume;
mod reuse;
mod rounds;
mod sentinel;
mod sessions;
mod shapes;
mod streams;
mod subscriptions;
mod tls;
mod told;
mod who;
mod withheld;

use crate::support::{
    agent::Agent,
    gate::{Gate, Policy, ends},
    tools::{Seen, Step, Tools},
};

/// Limits that a hanging server reaches soon.
const SHORT: &str = "[limits]\nconnect = \"1s\"\nfirst_byte = \"1s\"\nidle = \"1s\"\n";

/// A gateway before one server, `s`, that does what `script` says.
async fn before(
    script: impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static,
    tables: &str,
) -> (Tools, Gate) {
    let tools = Tools::start(script).await;
    let policy = Policy::local("").server("s", tools.address, "", tables);
    (tools, Gate::start(&policy))
}

/// A gateway before a sound server.
async fn sound() -> (Tools, Gate) {
    before(|_| None, "").await
}

/// Stops the gateway once it has answered a good call, and returns how all requests ended.
async fn stop(gate: Gate) -> Vec<String> {
    Agent::modern("s").good(&gate).await;
    let mut ended = ends(&gate.stop().await);
    assert_eq!(ended.pop().as_deref(), Some("call allowed"));
    ended
}
