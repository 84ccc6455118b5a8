//! One binary for every integration test.

mod audit;
mod audit_faults;
mod corpus;
mod demo;
mod layers;
