//! The thin binary: argv to exit code.

fn main() {}
