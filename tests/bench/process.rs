//! What the measured processes used.

use std::fs;
use std::io::{Error, Result};

use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

/// Processor time of all threads of `processes` so far, in nanoseconds; that of threads which have ended, too.
pub(crate) fn nanoseconds(processes: &[u32]) -> Result<u64> {
    processes.iter().map(|&process| used(process)).sum()
}

fn used(process: u32) -> Result<u64> {
    let process = Pid::from_raw(process.try_into().map_err(Error::other)?);
    let used = clock_getcpuclockid(process)?.now()?;
    let used = std::time::Duration::from(used).as_nanos();
    used.try_into().map_err(Error::other)
}

/// A field of `/proc/PID/status` that counts KiB, summed over `processes`.
pub(crate) fn kib(processes: &[u32], field: &str) -> Result<u64> {
    processes.iter().map(|&process| read(process, field)).sum()
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
