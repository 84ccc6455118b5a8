//! `tollgate reload`.

use std::process::ExitCode;

use super::{
    Exit,
    socket::{Which, say},
};
use crate::app::control::{Answer, Request};

/// Make the running process read its policy again.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,
}

/// Asks; exit code 1 where the new policy has faults, which are shown: the old one stays in force.
pub(super) fn run(args: Args) -> ExitCode {
    match args.which.ask(Request::Reload) {
        Ok(Answer::Reloaded {
            generation,
            restart,
        }) => {
            say(&format!("policy generation {generation} is in force\n"));
            for setting in restart {
                say(&format!(
                    "`{setting}` has changed and waits for a restart\n"
                ));
            }
            Exit::Ok.into()
        }
        Ok(_) => Exit::Internal.into(),
        Err(exit) => exit.into(),
    }
}
