//! One binary for every integration test.

mod corpus;
mod explain;
