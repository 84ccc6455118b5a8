//! `tollgate pin`: what is pinned of a server, what it shows instead, and accepting that.

mod diff;
mod edits;
mod file;
mod show;

use std::process::ExitCode;

use serde::Serialize;

use super::{
    Exit,
    socket::{Which, complain, say},
    style::Styles,
};
use crate::{
    app::control::{
        Answer, Request,
        pins::{Accepted, Pins, Selection, State},
    },
    mcp::visible::escape_invisible,
};

/// Show what is pinned of a server, and accept what it shows now.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The running process reads all lists of the server, without any caller; where each user has a
credential of their own (auth mode bearer, header or oauth), it goes by what callers were shown
since it started. Exit code 1 where something differs from what is pinned (what is pinned and not
shown is no difference), or the server could not be read; 0 after something was accepted.

Examples:
  tollgate pin notes                      each item, how it stands, and its read-only hint
  tollgate pin notes --diff               what changed, for review; fails in CI where anything did
  tollgate pin notes --accept get_note    take one tool as it is now
  tollgate pin notes --accept-all         take everything; pin = \"file\": write pins/notes.json")]
pub(super) struct Args {
    /// The server, as the policy names it
    server: String,
    /// Show what differs, definition by definition
    #[arg(long, conflicts_with_all = ["accept", "accept_all"])]
    diff: bool,
    /// Accept what is shown under these names now; NAME@DIGEST only if its SHA-256 begins with these 16 digits or more, as --diff shows them
    #[arg(long, value_name = "TOOL", num_args = 1.., conflicts_with = "accept_all")]
    accept: Vec<String>,
    /// Accept everything that is shown now
    #[arg(long)]
    accept_all: bool,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Asks, shows, accepts.
pub(super) fn run(args: Args) -> ExitCode {
    let exit = match selection(&args) {
        Some(selection) => accept(&args, selection),
        None => show(&args),
    };
    exit.unwrap_or_else(|exit| exit).into()
}

fn selection(args: &Args) -> Option<Selection> {
    if args.accept_all {
        return Some(Selection::All);
    }
    (!args.accept.is_empty()).then(|| Selection::Tools(args.accept.clone()))
}

fn read(args: &Args) -> Result<Pins, Exit> {
    let request = Request::PinRead {
        server: args.server.clone(),
    };
    match args.which.ask(request)? {
        Answer::Pins(pins) => Ok(pins),
        _ => Err(Exit::Internal),
    }
}

fn show(args: &Args) -> Result<Exit, Exit> {
    let pins = read(args)?;
    let styles = Styles::stdout();
    let text = match (args.json, args.diff) {
        (true, _) => json(&pins)?,
        (false, true) => show::differences(&pins, styles),
        (false, false) => show::table(&pins, styles),
    };
    say(&text);
    if pins.unasked {
        complain(&[unasked(&pins.server)]);
    }
    if let Some(why) = &pins.unread {
        complain(&[unread(&pins.server, why)]);
        return Ok(Exit::Failed);
    }
    let differs = pins.items.iter().any(|row| differs(row.state));
    Ok(if differs { Exit::Failed } else { Exit::Ok })
}

fn accept(args: &Args, accept: Selection) -> Result<Exit, Exit> {
    let pins = read(args)?;
    if let Some(why) = &pins.unread {
        complain(&[unread(&pins.server, why)]);
        return Err(Exit::Failed);
    }
    if pins.unasked && pins.items.is_empty() {
        complain(&[unseen(&pins.server)]);
        return Err(Exit::Failed);
    }
    let request = Request::PinAccept {
        server: args.server.clone(),
        accept,
    };
    let Answer::Accepted(accepted) = args.which.ask(request)? else {
        return Err(Exit::Internal);
    };
    let written = match &accepted.file {
        Some(file) => Some(file::write(&args.server, file)?),
        None => None,
    };
    if written.is_some() {
        args.which.ask(Request::Reload)?;
    }
    let text = if args.json {
        json(&Outcome::new(&accepted, written.as_deref()))?
    } else {
        show::accepted(&args.server, &accepted, written.as_deref())
    };
    say(&text);
    Ok(Exit::Ok)
}

/// What `--json` writes after something was accepted.
#[derive(Serialize)]
struct Outcome<'a> {
    version: u64,
    accepted: &'a [crate::app::control::pins::AcceptedItem],
    file: Option<&'a str>,
}

impl<'a> Outcome<'a> {
    fn new(accepted: &'a Accepted, file: Option<&'a str>) -> Self {
        Self {
            version: accepted.version,
            accepted: &accepted.items,
            file,
        }
    }
}

/// Whether an item that stands so is something to look at.
fn differs(state: State) -> bool {
    matches!(state, State::Drifted | State::New)
}

fn unread(server: &str, why: &str) -> String {
    format!("server `{server}` could not be read: {}", visible(why))
}

fn unasked(server: &str) -> String {
    format!(
        "server `{server}` was not asked, since it wants a user's credential; this is what callers were shown since tollgate \
         started"
    )
}

/// With nothing to accept, accepting would only end first use.
fn unseen(server: &str) -> String {
    format!(
        "nothing of server `{server}` was shown to any caller yet, and it wants a user's credential; have a user of it list \
         its tools, then accept"
    )
}

/// A text of somebody else's, safe to be shown in one line.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars()
        .for_each(|character| escape_invisible(&mut out, character));
    out
}

/// JSON in lines, with escapes for what nobody would see.
fn json(value: &impl Serialize) -> Result<String, Exit> {
    let text = serde_json::to_string_pretty(value).map_err(|_| Exit::Internal)?;
    let lines: Vec<String> = text.lines().map(visible).collect();
    Ok(lines.join("\n") + "\n")
}
