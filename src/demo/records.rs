//! The records of a run, as a reader of the files finds them.

use std::{fs, io, path::Path};

use serde_json::Value;

/// Every record in `folder`, oldest first; a line that is still being written is left out.
pub(super) fn read(folder: &Path) -> io::Result<Vec<Value>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            files.push(path);
        }
    }
    files.sort();
    let mut records = Vec::new();
    for path in files {
        let text = fs::read_to_string(path)?;
        records.extend(
            text.lines()
                .filter_map(|line| serde_json::from_str(line).ok()),
        );
    }
    Ok(records)
}

/// One record on one line: what, where, how it ended, and under which link of the chain.
pub(super) fn line(record: &Value) -> String {
    let text = |key: &str| record[key].as_str().unwrap_or("-").to_owned();
    let what = match (record["server"].as_str(), record["tool"].as_str()) {
        (Some(server), Some(tool)) => format!("{server}/{tool}"),
        (Some(server), None) => server.to_owned(),
        (None, _) => "-".to_owned(),
    };
    let hash: String = text("hash").chars().take(12).collect();
    format!(
        "{:>4}  {:<9} {:<8} {:<24} {:<8} {:<26} {hash}",
        record["seq"],
        text("kind"),
        text("phase"),
        what,
        text("outcome"),
        text("code"),
    )
}
