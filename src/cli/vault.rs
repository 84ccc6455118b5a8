//! `tollgate vault`: what to do where a database is older than it was, or nobody can open it any more.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    process::ExitCode,
};

use clap::Subcommand;
use serde::Serialize;

use super::{
    Exit,
    socket::{Policy, complain, show, with_cause},
    style::{Styles, counted},
};
use crate::app::{
    control::{Answer, Request},
    keys::forget_all,
};

/// What has to be typed.
const WORDS: &str = "forget all";

/// Accept a restored database, or forget everything that is sealed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tollgate vault accept-restore           go on with a database that is older than the one before
  tollgate vault reset --forget-all       the keyring is lost: every user connects anew")]
pub(super) struct Args {
    #[command(flatten)]
    policy: Policy,
    /// One JSON object instead of text
    #[arg(long, global = true, display_order = 901)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Go on with a database that is older than one that was in use: tokens in it may have been replaced at their
    /// providers since, so that some users have to connect anew. Until then every connection is refused
    AcceptRestore,
    /// Take every sealed row out of the database, while no process uses it: connections, clients, secrets. Nothing is
    /// revoked at any provider. A keyring that cannot be used is moved aside, and a new one made. Where the keyring is
    /// another one than the pins were marked with, they go too
    Reset(Reset),
}

#[derive(Debug, clap::Args)]
struct Reset {
    /// Everything: there is no way back
    #[arg(long, required = true)]
    forget_all: bool,
    /// Ask nothing
    #[arg(long)]
    yes: bool,
}

/// Does what is asked; exit code 1 where it is refused, or nobody confirmed it.
pub(super) fn run(args: Args) -> ExitCode {
    let exit = match &args.action {
        Action::AcceptRestore => accept(&args),
        Action::Reset(reset) => reset_all(&args, reset),
    };
    exit.unwrap_or_else(|exit| exit).into()
}

/// What `--json` writes of a restore.
#[derive(Serialize)]
struct Accepted {
    changes: u64,
}

fn accept(args: &Args) -> Result<Exit, Exit> {
    let Answer::RestoreAccepted(changes) = args.policy.ask(Request::VaultAcceptRestore)? else {
        return Err(Exit::Internal);
    };
    show(&Accepted { changes }, args.json, |accepted, styles| {
        let done = format!("accepted; changes are counted from {}", accepted.changes);
        format!("{}\n", styles.good(&done))
    })?;
    Ok(Exit::Ok)
}

/// What `--json` writes of a reset.
#[derive(Serialize)]
struct Forgot {
    rows: u64,
    pins: bool,
    /// Where a keyring is now that could not be used.
    moved_keyring: Option<String>,
}

fn reset_all(args: &Args, reset: &Reset) -> Result<Exit, Exit> {
    let (settings, folder) = args.policy.settings()?;
    if !reset.yes {
        confirm(&settings.store.display().to_string())?;
    }
    let (forgotten, aside) = forget_all(&settings, &folder).map_err(|error| {
        complain(&[with_cause(&error)]);
        Exit::Failed
    })?;
    let forgot = Forgot {
        rows: forgotten.rows,
        pins: forgotten.pins,
        moved_keyring: aside.map(|path| path.display().to_string()),
    };
    show(&forgot, args.json, text)?;
    Ok(Exit::Ok)
}

fn text(forgot: &Forgot, styles: Styles) -> String {
    let rows = counted(
        usize::try_from(forgot.rows).unwrap_or(usize::MAX),
        "sealed row",
    );
    let mut text = format!("{}\n", styles.good(&format!("forgot {rows}")));
    if forgot.pins {
        text += "forgot all pins too: this keyring did not mark them; see `tollgate pin SERVER` after the next start\n";
    }
    if let Some(path) = &forgot.moved_keyring {
        text +=
            &format!("the keyring could not be used, and is `{path}` now; a new one was made\n");
    }
    text
}

fn confirm(database: &str) -> Result<(), Exit> {
    if !io::stdin().is_terminal() {
        complain(&["nobody is there to be asked; add --yes to forget everything"]);
        return Err(Exit::Usage);
    }
    let mut out = io::stderr().lock();
    let question = format!(
        "Every connection, client and secret in `{database}` will be gone, and nothing is revoked.\nType `{WORDS}`: "
    );
    let mut answer = String::new();
    let asked = out
        .write_all(question.as_bytes())
        .and_then(|()| out.flush())
        .and_then(|()| io::stdin().lock().read_line(&mut answer));
    if asked.is_ok() && answer.trim() == WORDS {
        return Ok(());
    }
    complain(&["nothing was changed"]);
    Err(Exit::Failed)
}
