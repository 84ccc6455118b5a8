//! The two ends of the benchmark: an upstream that answers from memory, and loads of several kinds.
//!
//! `bench-load upstream` serves until it is ended; the others do one thing and print one line of JSON.

mod calls;
mod client;
mod disk;
mod process;
mod sessions;
mod tools;
mod upstream;
mod wire;

use std::io::{self, Write as _};
use std::process::ExitCode;

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
    /// Open sessions, say so, and keep them open until standard input ends.
    Sessions(sessions::Plan),
    /// Begin calls and close their connections after the first event.
    Abandon(sessions::Abandon),
    /// Append a line and sync it, over and over, and print what that took.
    Sync(disk::Plan),
}

/// The protocol revision of a load.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Era {
    /// 2026-07-28
    Modern,
    /// 2025-11-25
    Legacy,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Options::parse().role).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nowhere else to say that this failed.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(role: Role) -> io::Result<()> {
    match role {
        Role::Upstream { port } => upstream::serve(port).await,
        Role::Calls(plan) => calls::run(plan).await,
        Role::Sessions(plan) => sessions::run(plan).await,
        Role::Abandon(plan) => sessions::abandon(plan).await,
        Role::Sync(plan) => disk::run(&plan),
    }
}
