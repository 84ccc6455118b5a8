//! One binary for every integration test.

mod audit;
mod audit_faults;
mod corpus;
mod layers;
