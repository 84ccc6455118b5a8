//! `explain`: what would be decided, and by which rule.

mod allow;
mod batch;
mod line;
mod names;
mod policy;
mod proxy;
mod question;
mod report;
mod single;

use std::{
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Write as _},
    process::ExitCode,
};

pub use batch::batch;

use self::{policy::Policy, question::Question};
use super::Exit;

/// Say what would be decided about a destination or a tool, and by which rule.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code 0 where it is allowed, 1 where it is not, or depends on what only a running process knows.

Examples:
  tollgate explain notes/search             whether the tool may be called, and how calls sign in
  tollgate explain notes --user ana         what acts of [auth], and every address
  tollgate explain https://example.com/     whether the forward proxy lets it pass")]
pub struct Args {
    /// A URL, or SERVER/TOOL; with --batch the file of cases (absent or `-` = standard input).
    #[arg(required_unless_present = "batch")]
    target: Option<String>,
    /// Judge JSON Lines, one case a line; opens no connection.
    #[arg(long)]
    batch: bool,
    #[command(flatten)]
    question: Question,
    /// Answer in JSON.
    #[arg(long, conflicts_with = "batch")]
    json: bool,
}

/// Runs `explain`.
pub fn run(args: Args) -> ExitCode {
    let ended = match args.target {
        file if args.batch => cases(file.as_deref(), &args.question),
        Some(target) => one(&target, &args.question, args.json),
        None => Ok(Exit::Usage),
    };
    ended
        .unwrap_or_else(|failed| {
            for line in failed.lines {
                // Nobody is left to tell where standard error is closed.
                drop(writeln!(io::stderr(), "{line}"));
            }
            failed.exit
        })
        .into()
}

/// Why there is nothing to explain.
struct Failed {
    exit: Exit,
    lines: Vec<String>,
}

impl Failed {
    fn new(exit: Exit, line: impl ToString) -> Self {
        Self {
            exit,
            lines: vec![line.to_string()],
        }
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::new(Exit::Failed, error)
    }
}

fn one(target: &str, question: &Question, json: bool) -> Result<Exit, Failed> {
    let policy = Policy::load(question.policy.as_deref())?;
    let report = single::explain(target, question, &policy)?;
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, &report).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        report.print(&mut out, super::style::Styles::stdout())?;
    }
    Ok(if report.allowed() {
        Exit::Ok
    } else {
        Exit::Failed
    })
}

fn cases(file: Option<&str>, question: &Question) -> Result<Exit, Failed> {
    let folder = question.policy.as_deref();
    let policy = folder
        .map(|folder| Policy::load(Some(folder)))
        .transpose()?;
    let policy = policy
        .as_ref()
        .map(|policy| (policy, policy.subject(question)));
    let cases: Box<dyn BufRead> = match file {
        Some(path) if path != "-" => {
            let file = File::open(path).map_err(|error| {
                Failed::new(Exit::Failed, format!("`{path}` cannot be read: {error}; name a file of cases, or `-` for standard input"))
            })?;
            Box::new(BufReader::new(file))
        }
        _ => Box::new(io::stdin().lock()),
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let policy = policy.as_ref().map(|(policy, subject)| (*policy, subject));
    let every = batch::batch_under(policy, cases, &mut out, &mut io::stderr().lock())?;
    Ok(if every { Exit::Ok } else { Exit::Usage })
}
