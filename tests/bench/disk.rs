//! What the disk takes for one line that is appended and synced: the floor of a durable call.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

/// About as long as a record.
const LINE: [u8; 450] = [b'x'; 450];

/// Where to write, and for how long.
#[derive(Args)]
pub(crate) struct Plan {
    /// A folder of the file system under measurement.
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    seconds: f64,
}

/// Appends and syncs, and prints the median as one line of JSON.
pub(crate) fn run(plan: &Plan) -> io::Result<()> {
    let path = plan.folder.join("sync");
    let mut file = File::create(&path)?;
    let end = Instant::now() + Duration::from_secs_f64(plan.seconds);
    let mut taken = Vec::new();
    let mut now = Instant::now();
    while now < end {
        file.write_all(&LINE)?;
        file.sync_data()?;
        let begun = std::mem::replace(&mut now, Instant::now());
        taken.push(now - begun);
    }
    std::fs::remove_file(path)?;
    taken.sort_unstable();
    let middle = taken.get(taken.len() / 2).copied().unwrap_or_default();
    let result = serde_json::json!({
        "syncs": taken.len(),
        "p50_us": middle.as_secs_f64() * 1e6,
    });
    writeln!(io::stdout(), "{result}")
}
