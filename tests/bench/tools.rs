//! The tools of the upstream, and what their results look like to both ends.

use std::sync::LazyLock;

use clap::ValueEnum;
use nix::time::{ClockId, clock_gettime};

use crate::Era;

/// Progress events before the result of a tool that streams.
pub(crate) const EVENTS: usize = 20;

/// What an answer costs depends on its shape; each shape is a tool.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tool {
    /// A result of 200 bytes.
    Small,
    /// A result of 64 KiB.
    Large,
    /// As `small`, but not read-only.
    Effect,
    /// Events and the result, in one write.
    Burst,
    /// Events and the result, a write each.
    Steps,
    /// Events every 5 ms, each with the time at which it left, and the result.
    Paced,
    /// One event, and then nothing until the caller goes.
    Endless,
}

impl Tool {
    pub(crate) const ALL: [Self; 7] = [
        Self::Small,
        Self::Large,
        Self::Effect,
        Self::Burst,
        Self::Steps,
        Self::Paced,
        Self::Endless,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
            Self::Effect => "effect",
            Self::Burst => "burst",
            Self::Steps => "steps",
            Self::Paced => "paced",
            Self::Endless => "endless",
        }
    }

    /// How many progress events precede its result.
    pub(crate) fn events(self) -> usize {
        match self {
            Self::Small | Self::Large | Self::Effect => 0,
            Self::Burst | Self::Steps | Self::Paced | Self::Endless => EVENTS,
        }
    }

    /// The content of its result, as JSON.
    pub(crate) fn content(self) -> &'static str {
        static SMALL: LazyLock<String> = LazyLock::new(|| content(200));
        static LARGE: LazyLock<String> = LazyLock::new(|| content(64 * 1024));
        match self {
            Self::Large => &LARGE,
            _ => &SMALL,
        }
    }

    /// What precedes the content in its result.
    pub(crate) fn prefix(era: Era) -> &'static str {
        match era {
            Era::Modern => r#""resultType":"complete","#,
            Era::Legacy => "",
        }
    }
}

/// A text that makes a legacy result of so many bytes.
fn content(bytes: usize) -> String {
    const BEGIN: &str = r#""content":[{"type":"text","text":""#;
    const END: &str = r#""}]"#;
    const BRACES: usize = 2;
    let words = "the quick brown fox jumps over the lazy dog, ".chars();
    let text: String = words
        .cycle()
        .take(bytes - BEGIN.len() - END.len() - BRACES)
        .collect();
    format!("{BEGIN}{text}{END}")
}

/// Nanoseconds on the clock that all processes of the machine share.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has this clock");
    let (seconds, nanoseconds) = (time.tv_sec().unsigned_abs(), time.tv_nsec().unsigned_abs());
    seconds * 1_000_000_000 + nanoseconds
}
