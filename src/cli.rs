//! Owns: the command line: what is asked for, and the exit code.
//! Imports: everything.
//! Never: decides; it asks the rooms that do.
//! Fails as: exit codes 1 (refused or failed), 64 (usage), 70 (internal), 78 (configuration).

pub mod explain;

use std::process::ExitCode;

use clap::Parser;

#[derive(Debug, Parser)]
#[command(name = "tollgate", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Say what would be decided about a destination or a tool, and why.
    Explain(explain::Args),
}

/// Runs the command of this process's arguments.
pub fn run() -> ExitCode {
    match Cli::try_parse() {
        Ok(Cli {
            command: Command::Explain(args),
        }) => explain::run(args),
        Err(error) => {
            // Help and version are errors to clap, and success here.
            let code = if error.use_stderr() { 64 } else { 0 };
            let _ = error.print();
            ExitCode::from(code)
        }
    }
}
