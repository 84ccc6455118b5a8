//! `[tunnels]` of `egress.toml`: what open tunnels may take.

use std::{num::NonZeroU32, time::Duration};

use crate::table::Table;

/// Bounds of the forward proxy's tunnels. A caller is an agent with a user of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelLimits {
    /// Open at once for one caller, plain requests that are under way among them.
    pub per_caller: usize,
    /// Open at once for all callers.
    pub all_callers: usize,
    /// New ones that a caller may have each second, in the long run.
    pub per_second: NonZeroU32,
    /// New ones that a caller may have at once.
    pub burst: NonZeroU32,
    /// Without a byte in either direction.
    pub idle: Duration,
    /// From the request to the end.
    pub lifetime: Duration,
    /// Bytes of both directions together.
    pub bytes: u64,
}

impl Default for TunnelLimits {
    fn default() -> Self {
        const PER_SECOND: NonZeroU32 = NonZeroU32::new(100).expect("it is not 0");
        const BURST: NonZeroU32 = NonZeroU32::new(200).expect("it is not 0");
        Self {
            per_caller: 512,
            // What the machine's descriptors allow is fewer.
            all_callers: usize::MAX,
            per_second: PER_SECOND,
            burst: BURST,
            idle: Duration::from_secs(10 * 60),
            lifetime: Duration::from_secs(24 * 60 * 60),
            bytes: u64::MAX,
        }
    }
}

/// Reads the table, if it stands there.
pub(super) fn read(root: &Table<'_>) -> TunnelLimits {
    const COUNT: std::ops::RangeInclusive<u64> = 1..=1_000_000;
    const MOMENT: Duration = Duration::from_millis(1);
    let defaults = TunnelLimits::default();
    let Some(table) = root.table("tunnels") else {
        return defaults;
    };
    let many = |key| {
        let found = table.integer(key, COUNT);
        found.and_then(|found| usize::try_from(found).ok())
    };
    let rate = |key| {
        let found = table.integer(key, COUNT);
        found.and_then(|found| NonZeroU32::new(u32::try_from(found).ok()?))
    };
    let time = |key, days: u64| {
        let longest = Duration::from_secs(days * 24 * 60 * 60);
        table.duration(key, MOMENT..=longest)
    };
    TunnelLimits {
        per_caller: many("per_caller").unwrap_or(defaults.per_caller),
        all_callers: many("all_callers").unwrap_or(defaults.all_callers),
        per_second: rate("per_second").unwrap_or(defaults.per_second),
        burst: rate("burst").unwrap_or(defaults.burst),
        idle: time("idle", 1).unwrap_or(defaults.idle),
        lifetime: time("lifetime", 30).unwrap_or(defaults.lifetime),
        bytes: table
            .integer("bytes", 1..=u64::MAX >> 1)
            .unwrap_or(defaults.bytes),
    }
}
