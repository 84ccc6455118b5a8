//! What the measured processes used, from `/proc`.

use std::fs;
use std::io::{Error, Result};

/// Processor time of all threads of `processes` so far, in nanoseconds: to the scheduler's own precision, where
/// `/proc/PID/stat` counts in hundredths of a second.
pub(crate) fn nanoseconds(processes: &[u32]) -> Result<u64> {
    let mut sum = 0;
    for process in processes {
        for thread in fs::read_dir(format!("/proc/{process}/task"))? {
            sum += used(&fs::read_to_string(thread?.path().join("schedstat"))?)?;
        }
    }
    Ok(sum)
}

/// A field of `/proc/PID/status` that counts KiB, summed over `processes`.
pub(crate) fn kib(processes: &[u32], field: &str) -> Result<u64> {
    processes.iter().map(|&process| read(process, field)).sum()
}

fn used(schedstat: &str) -> Result<u64> {
    let first = schedstat.split(' ').next();
    first
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| Error::other(format!("`{schedstat}` is no schedstat")))
}

fn read(process: u32, field: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    status
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| *name == field)
        .and_then(|(_, value)| value.trim().strip_suffix(" kB")?.parse().ok())
        .ok_or_else(|| Error::other(format!("`/proc/{process}/status` has no {field}")))
}
