//! What the measured processes used, from `/proc`.

use std::fs;
use std::io::{Error, Result};

/// The tick of `/proc/PID/stat`, fixed on Linux for every architecture we run on.
const MICROSECONDS_PER_TICK: u64 = 10_000;

/// Processor time of all threads of `processes` so far, in microseconds.
pub(crate) fn microseconds(processes: &[u32]) -> Result<u64> {
    processes.iter().map(|&process| used(process)).sum()
}

/// Memory that belongs to `processes` alone and to no file, in KiB.
pub(crate) fn anonymous_kib(processes: &[u32]) -> Result<u64> {
    processes.iter().map(|&process| anonymous(process)).sum()
}

fn used(process: u32) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The second field is the name in brackets, which may hold spaces; utime and stime are the
    // 14th and 15th of all.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields);
    let mut fields = fields.unwrap_or_default().split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|field| field.parse::<u64>().ok());
    match (ticks(), ticks()) {
        (Some(user), Some(system)) => Ok((user + system) * MICROSECONDS_PER_TICK),
        _ => Err(Error::other(format!("`/proc/{process}/stat` has no times"))),
    }
}

fn anonymous(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok())
        .ok_or_else(|| Error::other(format!("`/proc/{process}/status` has no RssAnon")))
}
