//! `tollgate check`: every fault of a policy folder, or what it amounts to.

mod report;

use std::{path::PathBuf, process::ExitCode};

use serde::Serialize;

use super::{
    Exit,
    socket::{config_fault, say, with_cause},
    style::{Styles, counted},
};
use crate::{
    app::{
        keys,
        load::{self, Loaded, Loader},
    },
    table::Fault,
};
use report::Report;

/// Check a policy folder without running anything.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Faults are told as file:line:col: key: message, all of them at once; exit code 78 if there are any.
Where what a key names is at fault, or no file of the folder, it is file: key: message.

Examples:
  tollgate check --policy ./policy
  tollgate check --json | jq '.faults[]'")]
pub(super) struct Args {
    /// Policy folder [default: $TOLLGATE_POLICY, /etc/tollgate, ~/.config/tollgate]
    #[arg(long, value_name = "DIR")]
    policy: Option<PathBuf>,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What `--json` writes where there are faults; without, it writes a [`Report`].
#[derive(Serialize)]
struct Faults<'a> {
    faults: Vec<JsonFault<'a>>,
}

#[derive(Serialize)]
struct JsonFault<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    key: &'a str,
    message: &'a str,
}

/// Checks and tells.
pub(super) fn run(args: Args) -> ExitCode {
    let folder = match load::find_folder(args.policy.as_deref()) {
        Ok(folder) => folder,
        Err(fault) => return config_fault(&[fault]).into(),
    };
    let loader = Loader::new(folder, load::environment());
    let styles = Styles::stdout();
    let (exit, text) = match load(&loader) {
        Ok(loaded) => {
            let report = Report::new(&loader, &loaded);
            let text = if args.json {
                json(&report)
            } else {
                report.text(styles)
            };
            (Exit::Ok, text)
        }
        Err(faults) => {
            let faults: Vec<Fault> = faults
                .into_iter()
                .map(|fault| in_folder(&loader, fault))
                .collect();
            let text = if args.json {
                json(&of(&faults))
            } else {
                listed(&faults, styles)
            };
            (Exit::Config, text)
        }
    };
    say(&text);
    exit.into()
}

/// What the folder says, and whether the keyring of its settings can be used.
fn load(loader: &Loader) -> Result<Loaded, Vec<Fault>> {
    let loaded = loader.load()?;
    match keys::look(&loaded.settings, loader.folder()) {
        Ok(()) => Ok(loaded),
        Err(error) => Err(vec![Fault::whole("keyring", with_cause(&error))]),
    }
}

/// The fault with its file as a shell or an editor finds it from here.
fn in_folder(loader: &Loader, mut fault: Fault) -> Fault {
    let path = loader.folder().join(&fault.file);
    if path.symlink_metadata().is_ok() {
        fault.file = path.display().to_string();
    }
    fault
}

fn listed(faults: &[Fault], styles: Styles) -> String {
    let lines = faults.iter().map(|fault| format!("{fault}\n"));
    let count = counted(faults.len(), "fault");
    lines.chain([format!("{}\n", styles.bad(&count))]).collect()
}

fn of(faults: &[Fault]) -> Faults<'_> {
    let faults = faults.iter().map(|fault| JsonFault {
        file: &fault.file,
        line: fault.line,
        column: fault.column,
        key: &fault.key,
        message: &fault.message,
    });
    Faults {
        faults: faults.collect(),
    }
}

fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value);
    text.expect("texts, numbers and lists have a JSON form") + "\n"
}

#[cfg(test)]
mod tests;
