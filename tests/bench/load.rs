//! The two ends of the benchmark: upstreams that answer from memory, and loads of several kinds.
//!
//! `bench-load upstream` and `forward-upstream` serve until they are ended; the others do one thing and print one line of JSON.

mod calls;
mod client;
mod disk;
mod forward;
mod process;
mod sessions;
mod tools;
mod upstream;
mod window;
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
    /// Serve small answers, bytes and a place for bytes on 127.0.0.1, behind a TLS ClientHello or without.
    ForwardUpstream {
        #[arg(long)]
        port: u16,
    },
    /// Ask through a forward proxy over and over, and print what it took.
    Requests(forward::RequestsPlan),
    /// Move bytes through tunnels of a forward proxy, and print what it took.
    Bulk(forward::BulkPlan),
    /// Open tunnels, say so, and keep them open until standard input ends.
    Idle(forward::IdlePlan),
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
        Role::ForwardUpstream { port } => forward::serve(port).await,
        Role::Requests(plan) => forward::requests(plan).await,
        Role::Bulk(plan) => forward::bulk(plan).await,
        Role::Idle(plan) => forward::idle(plan).await,
        Role::Sync(plan) => disk::run(&plan),
    }
}
