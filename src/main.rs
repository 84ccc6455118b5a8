//! The thin binary: argv to exit code.

use std::process::ExitCode;

/// A call makes some hundred small allocations across hyper and our own rooms; glibc's allocator takes a fifth of its
/// processor time for them, and keeps what a burst of large results took.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tollgate::cli::run(std::env::args_os())
}
