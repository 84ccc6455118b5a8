//! Which process a command speaks to.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use super::Exit;
use crate::{
    app::{
        control::{self, Answer, Request},
        load,
    },
    config,
    table::{self, Fault},
};

/// Which process a command speaks to.
#[derive(Debug, clap::Args)]
pub(super) struct Which {
    /// Policy folder of the process [default: $TOLLGATE_POLICY, /etc/tollgate, ~/.config/tollgate]
    #[arg(long, value_name = "DIR")]
    policy: Option<PathBuf>,
    /// Control socket of the process [default: control.sock in its state_dir]
    #[arg(long, value_name = "PATH", conflicts_with = "policy")]
    socket: Option<PathBuf>,
}

impl Which {
    /// Asks it. A reason why there is no answer is told on standard error.
    pub(super) fn ask(&self, request: Request) -> Result<Answer, Exit> {
        let socket = match &self.socket {
            Some(socket) => socket.clone(),
            None => self.configured()?,
        };
        match control::ask(&socket, request) {
            Ok(Answer::Failed(reasons)) => {
                complain(&reasons);
                Err(Exit::Failed)
            }
            Ok(answer) => Ok(answer),
            Err(error) => {
                complain(&[with_cause(&error)]);
                Err(Exit::Failed)
            }
        }
    }

    /// Reads nothing but `state_dir`: a fault elsewhere in the folder must not keep `status` from telling of it.
    fn configured(&self) -> Result<PathBuf, Exit> {
        let folder =
            load::find_folder(self.policy.as_deref()).map_err(|fault| config_fault(&[fault]))?;
        let text = std::fs::read_to_string(folder.join(config::FILE)).unwrap_or_default();
        let (written, _) = table::read(config::FILE, &text, |root| root.text("state_dir"));
        if let Some(state_dir) = written.flatten() {
            return Ok(PathBuf::from(state_dir.value).join(config::CONTROL_SOCKET));
        }
        let defaults = config::read(None, &load::environment());
        defaults
            .map(|settings| settings.control_socket())
            .map_err(|faults| config_fault(&faults))
    }
}

/// Tells faults of the configuration.
pub(super) fn config_fault(faults: &[Fault]) -> Exit {
    complain(faults);
    Exit::Config
}

/// Writes lines to standard error.
pub(super) fn complain<T: ToString>(lines: &[T]) {
    let mut out = io::stderr().lock();
    for line in lines {
        // Nobody is left to be told that standard error is closed.
        let _ = writeln!(out, "tollgate: {}", line.to_string());
    }
}

/// Writes a text to standard output; a closed pipe is no failure.
pub(super) fn say(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// An error with its causes, once each.
pub(super) fn with_cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
