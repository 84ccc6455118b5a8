//! Owns: the command line: what can be asked, how answers look, and exit codes.
//! Imports: everything.
//! Never: decides anything that a running process would decide otherwise.
//! Fails as: an exit code of [`Exit`], with the reason on standard error.

mod agent_key;
mod auth;
mod check;
mod connections;
mod demo;
mod drain;
mod exit;
pub mod explain;
mod keys;
mod login;
mod pin;
mod reload;
mod replace;
mod secret;
mod serve;
mod server;
mod socket;
mod status;
mod style;
mod tunnels;
mod vault;

use std::{ffi::OsString, process::ExitCode};

use clap::{Parser, Subcommand};

pub use exit::Exit;

const ABOUT: &str =
    "A sidecar MCP gateway: every tool call is judged, pinned to its address, and recorded";

const EXAMPLES: &str = "\
Examples:
  tollgate demo                          see it work, with nothing else installed
  tollgate check --policy ./policy       every fault of a policy folder, as file:line:col
  tollgate serve --policy ./policy       run it; agents connect to http://127.0.0.1:8700/mcp/NAME
  tollgate explain https://example.com   what would happen, and which rule decides
  tollgate pin notes --diff              what a server shows that is not as it was reviewed
  tollgate status                        how the running process is

Exit codes: 0 ok, 1 refused or failed, 64 usage, 70 internal, 78 configuration.";

#[derive(Debug, Parser)]
#[command(name = "tollgate", version, about = ABOUT, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What each does says its arguments' own first line.
#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Serve(serve::Args),
    Check(check::Args),
    Explain(explain::Args),
    Pin(pin::Args),
    AgentKey(agent_key::Args),
    Login(login::Args),
    Keys(keys::Args),
    Vault(vault::Args),
    Status(status::Args),
    Connections(connections::Args),
    Secret(secret::Args),
    Server(server::Args),
    Tunnels(tunnels::Args),
    Reload(reload::Args),
    Drain(drain::Args),
}

/// Runs the command that `args` (program name first) ask for.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // A closed pipe is no reason for another exit code.
            drop(error.print());
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Ok
            }
            .into();
        }
    };
    match cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Check(args) => check::run(args),
        Command::AgentKey(args) => agent_key::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Pin(args) => pin::run(args),
        Command::Login(args) => login::run(args),
        Command::Keys(args) => keys::run(args),
        Command::Vault(args) => vault::run(args),
        Command::Status(args) => status::run(args),
        Command::Connections(args) => connections::run(args),
        Command::Secret(args) => secret::run(args),
        Command::Server(args) => server::run(args),
        Command::Tunnels(args) => tunnels::run(args),
        Command::Reload(args) => reload::run(args),
        Command::Drain(args) => drain::run(args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_tree_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_says_on_its_line_what_it_does() {
        let mut cli = Cli::command();
        let listed = cli.render_help().to_string();
        let line = |name: &str| {
            let mut lines = listed.lines().map(str::trim_start);
            lines
                .find(|line| line.starts_with(&format!("{name} ")))
                .map(str::to_owned)
        };
        for (name, what) in [
            ("demo", "See it work"),
            ("serve", "Run the gateway"),
            ("check", "Check a policy folder"),
            ("explain", "Say what would be decided"),
            ("pin", "Show what is pinned"),
            ("agent-key", "Make, list and revoke agent keys"),
            ("login", "Print a link that signs a browser in"),
            ("keys", "Make and rotate the keys"),
            ("vault", "Accept a restored database"),
            ("status", "Tell how the running process is"),
            (
                "connections",
                "List the connections of users to servers, and how they stand",
            ),
            (
                "secret",
                "Keep secrets in the vault that servers with mode = \"shared\"",
            ),
            ("server", "End a server's connections"),
            ("tunnels", "List the open tunnels"),
            ("reload", "Make the running process read"),
            ("drain", "Make the running process finish"),
        ] {
            let line = line(name).unwrap_or_default();
            assert!(line.contains(what), "{name}: {line}");
        }
    }
}
