//! The thin binary: argv to exit code.

use std::process::ExitCode;

/// A call makes many small allocations, most of them in hyper; glibc's allocator takes about a sixth of its processor
/// time for them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tollgate::cli::run(std::env::args_os())
}
