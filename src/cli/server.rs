//! `tollgate server`.

use std::process::ExitCode;

use clap::Subcommand;

use super::{
    Exit,
    socket::{Which, show},
    style::{Styles, counted},
};
use crate::app::control::{Answer, Removed, Request};

/// End a server's connections and forget what was discovered of it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// End every connection to a server, remove its secrets from the vault, and forget what was discovered of it; then
    /// delete its file.
    Remove {
        #[command(flatten)]
        which: Which,
        /// The server
        name: String,
        /// One JSON object instead of text
        #[arg(long)]
        json: bool,
    },
}

/// Asks and shows; exit code 1 where it did not work.
pub(super) fn run(args: Args) -> ExitCode {
    let Command::Remove { which, name, json } = args.command;
    match which.ask(Request::ServerRemove { server: name }) {
        Ok(Answer::Removed(removed)) => show(&removed, json, text).err().unwrap_or(Exit::Ok),
        Ok(_) => Exit::Internal,
        Err(exit) => exit,
    }
    .into()
}

fn text(removed: &Removed, _: Styles) -> String {
    let Removed {
        server,
        connections,
        revoked,
        shared,
    } = removed;
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let ended = counted(number(*connections), "connection");
    let secrets = match shared {
        0 => String::new(),
        1 => "1 secret of the vault removed; it is still valid at its provider\n".to_owned(),
        _ => {
            format!(
                "{shared} secrets of the vault removed; they are still valid at their provider\n"
            )
        }
    };
    format!(
        "{ended} to `{server}` ended, {revoked} revoked by the provider; what was discovered of it is forgotten\n{secrets}\
         now delete its file, servers/{server}.toml or server.{server}.toml, and its name wherever [[private]] tables of \
         egress.toml have it; its pins are kept, so that a server of this name and URL is not taken as it shows itself then\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_to_do_is_told() {
        for (shared, secrets) in [
            (0, ""),
            (
                1,
                "1 secret of the vault removed; it is still valid at its provider\n",
            ),
            (
                2,
                "2 secrets of the vault removed; they are still valid at their provider\n",
            ),
        ] {
            let removed = Removed {
                server: "notes".to_owned(),
                connections: 2,
                revoked: 1,
                shared,
            };
            let told = format!(
                "2 connections to `notes` ended, 1 revoked by the provider; what was discovered of it is forgotten\n{secrets}\
                 now delete its file, servers/notes.toml or server.notes.toml, and its name wherever [[private]] tables of \
                 egress.toml have it; its pins are kept, so that a server of this name and URL is not taken as it shows itself then\n"
            );
            assert_eq!(text(&removed, Styles::plain()), told);
        }
    }
}
