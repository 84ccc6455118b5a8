//! One binary for every integration test.
