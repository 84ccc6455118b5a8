//! The load: so many connections, each with one call at a time, for so long.

use std::io::{self, Error, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use tokio::task::JoinSet;

use crate::client::{Call, Client, Endpoint};
use crate::process;
use crate::tools::Tool;

/// The tail is judged within slices of the window: long enough for several turns of all connections, short enough that
/// a moment in which the host takes the core away is in few of them.
const SLICE: Duration = Duration::from_millis(200);

/// What to call, and for how long.
#[derive(Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    endpoint: Endpoint,
    #[arg(long, value_enum)]
    tool: Tool,
    #[arg(long)]
    connections: usize,
    /// Seconds that are measured, after a fifth of that which is not.
    #[arg(long)]
    seconds: f64,
    /// Processes whose processor time and memory are measured.
    #[arg(long, value_delimiter = ',')]
    watch: Vec<u32>,
}

/// When to measure.
struct Window {
    begin: Instant,
    end: Instant,
    /// Calls that were answered so far, on all connections.
    answered: AtomicU64,
}

/// What was measured of calls that were answered after the window began, in nanoseconds.
#[derive(Default)]
struct Taken {
    calls: Vec<Answered>,
    /// From the upstream to the client, for each event.
    lags: Vec<u64>,
}

/// A call, by what it took and in which slice of the window it ended.
struct Answered {
    nanoseconds: u64,
    slice: u128,
}

/// How far everything was at a moment. Between two moments as many calls are begun too early as are ended too late.
struct Moment {
    at: Instant,
    answered: u64,
    nanoseconds: u64,
}

impl Moment {
    async fn at(due: Instant, window: &Window, watch: &[u32]) -> io::Result<Self> {
        tokio::time::sleep_until(due.into()).await;
        Ok(Self {
            at: Instant::now(),
            answered: window.answered.load(Ordering::Relaxed),
            nanoseconds: process::nanoseconds(watch)?,
        })
    }
}

/// Loads, and prints what it took as one line of JSON. Any call that fails ends the run.
pub(crate) async fn run(plan: Plan) -> io::Result<()> {
    let clients = plan.endpoint.clients(plan.connections).await?;
    let begin = Instant::now() + Duration::from_secs_f64(plan.seconds / 5.0);
    let window = Arc::new(Window {
        begin,
        end: begin + Duration::from_secs_f64(plan.seconds),
        answered: AtomicU64::new(0),
    });
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn(load(client, plan.tool, Arc::clone(&window)));
    }
    let before = Moment::at(window.begin, &window, &plan.watch).await?;
    let after = Moment::at(window.end, &window, &plan.watch).await?;
    let mut clients = Vec::new();
    let mut taken = Taken::default();
    while let Some(finished) = tasks.join_next().await {
        let (client, of_client) = finished.map_err(Error::other)??;
        clients.push(client);
        taken.calls.extend(of_client.calls);
        taken.lags.extend(of_client.lags);
    }
    report(&plan, taken, &before, &after)?;
    for client in clients {
        client.close().await?;
    }
    Ok(())
}

/// Calls until the window ends.
async fn load(mut client: Client, tool: Tool, window: Arc<Window>) -> io::Result<(Client, Taken)> {
    let mut call = Call::new(&client, tool);
    let mut taken = Taken::default();
    let mut now = Instant::now();
    while now < window.end {
        client.call(&mut call, &mut taken.lags).await?;
        window.answered.fetch_add(1, Ordering::Relaxed);
        let begun = std::mem::replace(&mut now, Instant::now());
        if now >= window.begin {
            taken.calls.push(Answered {
                nanoseconds: (now - begun).as_nanos().try_into().unwrap_or(u64::MAX),
                slice: (now - window.begin).as_nanos() / SLICE.as_nanos(),
            });
        } else {
            taken.lags.clear();
        }
    }
    Ok((client, taken))
}

fn report(plan: &Plan, mut taken: Taken, before: &Moment, after: &Moment) -> io::Result<()> {
    let calls = after.answered - before.answered;
    if calls == 0 {
        return Err(Error::other("no call was answered in time"));
    }
    let used = after.nanoseconds - before.nanoseconds;
    let tail = tail(&mut taken.calls);
    let mut took: Vec<u64> = taken.calls.iter().map(|call| call.nanoseconds).collect();
    took.sort_unstable();
    taken.lags.sort_unstable();
    let result = serde_json::json!({
        "calls": calls,
        "p50_us": microseconds(&took, 50),
        "p99_us": microseconds(&took, 99),
        "tail": tail,
        "lag_p50_us": microseconds(&taken.lags, 50),
        "lag_p99_us": microseconds(&taken.lags, 99),
        "per_second": calls as f64 / (after.at - before.at).as_secs_f64(),
        "cpu_us": used as f64 / 1e3 / calls as f64,
        "rss_kib": process::kib(&plan.watch, "VmRSS")?,
        "anonymous_kib": process::kib(&plan.watch, "RssAnon")?,
    });
    writeln!(io::stdout(), "{result}")
}

/// p99 over p50 within a slice, in the median slice.
fn tail(calls: &mut [Answered]) -> Option<f64> {
    calls.sort_unstable_by_key(|call| (call.slice, call.nanoseconds));
    let slices = calls.chunk_by(|one, other| one.slice == other.slice);
    let mut tails: Vec<f64> = slices
        .map(|slice| {
            let at = |percent: usize| slice[slice.len() * percent / 100].nanoseconds as f64;
            at(99) / at(50)
        })
        .collect();
    tails.sort_by(f64::total_cmp);
    tails.get(tails.len() / 2).copied()
}

/// So many percent of `sorted` are not above what this returns; `None` where there is nothing.
fn microseconds(sorted: &[u64], percent: usize) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = (sorted.len() * percent / 100).min(last);
    Some(sorted[at] as f64 / 1e3)
}
