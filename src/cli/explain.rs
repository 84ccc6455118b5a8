//! `explain`: what would be decided, and by which rule.

mod allow;
mod batch;
mod line;
mod names;

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write as _},
    path::PathBuf,
    process::ExitCode,
};

pub use batch::batch;

/// Wrong usage, after the BSD `sysexits`.
const USAGE: u8 = 64;

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Judge JSON Lines, one case a line; opens no connection.
    #[arg(long)]
    batch: bool,
    /// With `--batch`: the file of cases; absent or `-` = standard input.
    target: Option<PathBuf>,
}

/// Runs `explain`.
pub fn run(args: Args) -> ExitCode {
    let judged = run_batch(args.target);
    match judged {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(USAGE),
        Err(error) => {
            let _ = writeln!(io::stderr(), "explain: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_batch(file: Option<PathBuf>) -> io::Result<bool> {
    let cases: Box<dyn BufRead> = match file {
        Some(file) if file.as_os_str() != "-" => Box::new(BufReader::new(File::open(file)?)),
        _ => Box::new(io::stdin().lock()),
    };
    batch(
        cases,
        &mut io::BufWriter::new(io::stdout().lock()),
        &mut io::stderr().lock(),
    )
}
