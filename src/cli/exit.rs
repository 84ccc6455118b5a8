//! Exit codes (design: interfaces, CLI; the numbers of `sysexits.h`).

use std::process::ExitCode;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked.
    Ok,
    /// Refused or failed.
    Failed,
    /// The command line is wrong.
    Usage,
    /// A fault of Tollgate or of the machine.
    Internal,
    /// The configuration is wrong.
    Config,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Usage => 64,
            Exit::Internal => 70,
            Exit::Config => 78,
        })
    }
}
