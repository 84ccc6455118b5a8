//! `tollgate drain`.

use std::process::ExitCode;

use super::{
    Exit,
    socket::{Which, say},
};
use crate::app::control::{Answer, Request};

/// Make the running process finish what runs, and stop.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,
}

/// Asks, and returns at once: `tollgate status` fails when the process has gone.
pub(super) fn run(args: Args) -> ExitCode {
    match args.which.ask(Request::Drain) {
        Ok(Answer::Draining) => {
            say("draining: nothing new is accepted, and what runs is finished\n");
            Exit::Ok.into()
        }
        Ok(_) => Exit::Internal.into(),
        Err(exit) => exit.into(),
    }
}
