//! One binary for every integration test.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on stops where it stands"
)]

mod audit;
mod audit_faults;
mod connect;
mod connect_flow;
mod connect_refresh;
mod control;
mod corpus;
mod corpus_egress;
mod demo;
mod egress;
mod explain;
mod gateway;
mod layers;
mod listen;
mod oauth_cases;
mod pin;
mod plain;
mod policy;
mod proxy;
mod proxy_dns;
mod store;
mod tunnel;
mod web;
/// What tests share: real servers on loopback, real certificates, a real name server, a dialer that remembers.
#[path = "../support"]
mod support {
    pub(crate) mod agent;
    pub(crate) mod certs;
    pub(crate) mod client;
    pub(crate) mod dialer;
    pub(crate) mod disk;
    pub(crate) mod forwarder;
    pub(crate) mod gate;
    pub(crate) mod log;
    pub(crate) mod nameserver;
    pub(crate) mod permit;
    pub(crate) mod pipeline;
    pub(crate) mod protected;
    pub(crate) mod provider;
    pub(crate) mod sound;
    pub(crate) mod tools;
    pub(crate) mod tunnels;
    pub(crate) mod upstream;
}
