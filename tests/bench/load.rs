//! The two ends of the benchmark: an upstream that answers from memory, and a load of `tools/call`.
//!
//! `bench-load upstream` serves until it is ended; `bench-load calls` prints one line of JSON.

mod calls;
mod cpu;
mod upstream;

use std::error::Error;

use clap::{Parser, Subcommand, ValueEnum};

#[derive(Parser)]
#[command(about = "both ends of the benchmark, on loopback")]
struct Options {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Serve both eras on 127.0.0.1 from memory.
    Upstream {
        #[arg(long)]
        port: u16,
    },
    /// Call a tool over and over, and print what it took.
    Calls(calls::Plan),
}

/// The protocol revision of a load.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Era {
    /// 2026-07-28
    Modern,
    /// 2025-11-25
    Legacy,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    match Options::parse().role {
        Role::Upstream { port } => upstream::serve(port).await,
        Role::Calls(plan) => calls::run(plan).await,
    }
}
