//! When a load is measured, and what the measured processes used meanwhile.

use std::io::{self, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::process;

/// For how long, and whose processor time.
#[derive(Args)]
pub(crate) struct Span {
    /// Seconds that are measured, after a fifth of that which is not.
    #[arg(long)]
    seconds: f64,
    /// Processes whose processor time and memory are measured.
    #[arg(long, value_delimiter = ',')]
    watch: Vec<u32>,
}

/// When to measure.
pub(crate) struct Window {
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
    /// What all connections have done so far: calls that were answered, or bytes.
    done: AtomicU64,
}

impl Window {
    pub(crate) fn count(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }
}

/// How far everything was at a moment. Between two moments as many calls are begun too early as are ended too late.
struct Moment {
    at: Instant,
    done: u64,
    nanoseconds: u64,
}

/// What was done within the window.
pub(crate) struct Used {
    done: u64,
    seconds: f64,
    nanoseconds: u64,
}

impl Span {
    /// Gives each of `ends` to a `load` of its own, which goes on until the window ends; and what each load returns.
    /// The first that fails fails the run.
    pub(crate) async fn run<E, F, T>(
        &self,
        ends: Vec<E>,
        load: impl Fn(E, Arc<Window>) -> F,
    ) -> io::Result<(Used, Vec<T>)>
    where
        F: Future<Output = io::Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        let begin = Instant::now() + Duration::from_secs_f64(self.seconds / 5.0);
        let window = Arc::new(Window {
            begin,
            end: begin + Duration::from_secs_f64(self.seconds),
            done: AtomicU64::new(0),
        });
        let mut tasks = JoinSet::new();
        for end in ends {
            tasks.spawn(load(end, Arc::clone(&window)));
        }
        let before = self.moment(window.begin, &window).await?;
        let after = self.moment(window.end, &window).await?;
        let mut returned = Vec::new();
        while let Some(finished) = tasks.join_next().await {
            returned.push(finished.map_err(Error::other)??);
        }
        Ok((Used::between(&before, &after)?, returned))
    }

    async fn moment(&self, due: Instant, window: &Window) -> io::Result<Moment> {
        tokio::time::sleep_until(due.into()).await;
        Ok(Moment {
            at: Instant::now(),
            done: window.done.load(Ordering::Relaxed),
            nanoseconds: process::nanoseconds(&self.watch)?,
        })
    }

    /// `used`, by what was counted, with the memory that the processes have now.
    pub(crate) fn report(&self, used: &Used) -> io::Result<Value> {
        Ok(json!({
            "calls": used.done,
            "per_second": used.done as f64 / used.seconds,
            "cpu_us": used.nanoseconds as f64 / 1e3 / used.done as f64,
            "rss_kib": process::kib(&self.watch, "VmRSS")?,
            "anonymous_kib": process::kib(&self.watch, "RssAnon")?,
        }))
    }
}

impl Used {
    fn between(before: &Moment, after: &Moment) -> io::Result<Self> {
        let done = after.done - before.done;
        match done {
            0 => Err(Error::other("nothing was answered in time")),
            _ => Ok(Self {
                done,
                seconds: (after.at - before.at).as_secs_f64(),
                nanoseconds: after.nanoseconds - before.nanoseconds,
            }),
        }
    }
}

/// So many percent of `sorted` nanoseconds are not above what this returns; `None` where there is nothing.
pub(crate) fn microseconds(sorted: &[u64], percent: usize) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = (sorted.len() * percent / 100).min(last);
    Some(sorted[at] as f64 / 1e3)
}
