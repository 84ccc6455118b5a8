//! One binary for every integration test.

mod audit;
mod audit_faults;
mod layers;
mod corpus;
