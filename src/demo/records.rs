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
    let seq = record["seq"].to_string();
    let hash: String = text("hash").chars().take(12).collect();
    columns([
        &seq,
        &text("kind"),
        &text("phase"),
        &what,
        &text("outcome"),
        &text("code"),
        &hash,
    ])
}

/// What stands above the lines.
pub(super) fn heading() -> String {
    columns([
        "seq",
        "kind",
        "phase",
        "server/tool",
        "outcome",
        "code",
        "hash",
    ])
}

fn columns([seq, kind, phase, what, outcome, code, hash]: [&str; 7]) -> String {
    format!("{seq:>4}  {kind:<9} {phase:<8} {what:<22} {outcome:<8} {code:<24} {hash}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_is_shown_on_one_line() {
        let record = json!({ "seq": 7, "kind": "call", "phase": "outcome", "outcome": "allowed",
            "server": "tools", "tool": "get_time", "hash": "0123456789abcdef" });
        assert_eq!(
            line(&record),
            "   7  call      outcome  tools/get_time         allowed  -                        0123456789ab"
        );
    }
}
