//! Which process a command speaks to.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{Exit, style::Styles};
use crate::{
    app::{
        self,
        control::{self, Answer, AskError, Request},
        load,
    },
    config::{self, Settings},
    table::Fault,
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
        answer(control::ask(&socket, request).map_err(|error| with_cause(&error)))
    }

    /// Reads nothing but `state_dir`: a fault elsewhere in the folder must not keep `status` from telling of it.
    fn configured(&self) -> Result<PathBuf, Exit> {
        let folder =
            load::find_folder(self.policy.as_deref()).map_err(|fault| config_fault(&[fault]))?;
        let text = settings_text(&folder).map_err(|fault| config_fault(&[fault]))?;
        let state_dir = config::read_state_dir(&text, &load::environment())
            .map_err(|faults| config_fault(&faults))?;
        Ok(state_dir.join(config::CONTROL_SOCKET))
    }
}

/// Which settings a command uses, and which process speaks for them.
#[derive(Debug, clap::Args)]
pub(super) struct Policy {
    /// Policy folder of the process [default: $TOLLGATE_POLICY, /etc/tollgate, ~/.config/tollgate]
    #[arg(long, value_name = "DIR", global = true, display_order = 900)]
    policy: Option<PathBuf>,
}

impl Policy {
    /// Asks the process. A reason why there is no answer is told on standard error.
    pub(super) fn ask(&self, request: Request) -> Result<Answer, Exit> {
        let (settings, _) = self.settings()?;
        answer(
            control::ask(&settings.control_socket(), request).map_err(|error| with_cause(&error)),
        )
    }

    /// Asks the process, and does `alone` what it would do where there is none.
    pub(super) fn ask_or(
        &self,
        request: Request,
        alone: impl FnOnce(&Settings, &Path) -> Result<Answer, app::Error>,
    ) -> Result<Answer, Exit> {
        let (settings, folder) = self.settings()?;
        answer(match control::ask(&settings.control_socket(), request) {
            Err(AskError::NotRunning(_)) => {
                alone(&settings, &folder).map_err(|error| with_cause(&error))
            }
            asked => asked.map_err(|error| with_cause(&error)),
        })
    }

    /// The settings, and the policy folder that has them. Faults of the other files do not matter.
    pub(super) fn settings(&self) -> Result<(Settings, PathBuf), Exit> {
        let folder =
            load::find_folder(self.policy.as_deref()).map_err(|fault| config_fault(&[fault]))?;
        let text = settings_text(&folder).map_err(|fault| config_fault(&[fault]))?;
        let settings = config::read(Some(&text), &load::environment());
        Ok((settings.map_err(|faults| config_fault(&faults))?, folder))
    }
}

fn answer(answer: Result<Answer, String>) -> Result<Answer, Exit> {
    let reasons = match answer {
        Ok(Answer::Failed(reasons)) => reasons,
        Ok(answer) => return Ok(answer),
        Err(why) => vec![why],
    };
    complain(&reasons);
    Err(Exit::Failed)
}

/// The text of `tollgate.toml`. Only a file that is not there means the defaults: with any other failure the command
/// would speak to a process that nobody named.
fn settings_text(folder: &Path) -> Result<String, Fault> {
    let unreadable = |path: &Path, error: io::Error| {
        let message = format!("cannot be read: {error}; name the folder with --policy DIR");
        Fault::whole(path.display().to_string(), message)
    };
    // This tells a folder that is not there from one without the file, and wants the right to look into it.
    fs::read_dir(folder).map_err(|error| unreadable(folder, error))?;
    let file = folder.join(config::FILE);
    match fs::read_to_string(&file) {
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(&file).is_err() =>
        {
            Ok(String::new())
        }
        read => read.map_err(|error| unreadable(&file, error)),
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

/// Shows an answer: as JSON, or as the text that it makes.
pub(super) fn show<T: Serialize + ?Sized>(
    answer: &T,
    json: bool,
    text: impl FnOnce(&T, Styles) -> String,
) -> Result<(), Exit> {
    if json {
        let json = serde_json::to_string_pretty(answer).map_err(|_| Exit::Internal)?;
        say(&format!("{json}\n"));
    } else {
        say(&text(answer, Styles::stdout()));
    }
    Ok(())
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
