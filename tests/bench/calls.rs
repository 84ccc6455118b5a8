//! The load: so many connections, each with one call at a time, for so long.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;

use crate::client::{Call, Client, Endpoint};
use crate::tools::Tool;
use crate::window::{Span, Used, Window, microseconds};

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
    #[command(flatten)]
    span: Span,
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

/// Loads, and prints what it took as one line of JSON. Any call that fails ends the run.
pub(crate) async fn run(plan: Plan) -> io::Result<()> {
    let clients = plan.endpoint.clients(plan.connections).await?;
    let tool = plan.tool;
    let (used, loads) = plan
        .span
        .run(clients, |client, window| load(client, tool, window))
        .await?;
    let mut clients = Vec::new();
    let mut taken = Taken::default();
    for (client, of_client) in loads {
        clients.push(client);
        taken.calls.extend(of_client.calls);
        taken.lags.extend(of_client.lags);
    }
    report(&plan.span, &used, taken)?;
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
        window.count(1);
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

fn report(span: &Span, used: &Used, mut taken: Taken) -> io::Result<()> {
    let tail = tail(&mut taken.calls);
    let mut took: Vec<u64> = taken.calls.iter().map(|call| call.nanoseconds).collect();
    took.sort_unstable();
    taken.lags.sort_unstable();
    let mut result = span.report(used)?;
    result["p50_us"] = microseconds(&took, 50).into();
    result["p99_us"] = microseconds(&took, 99).into();
    result["tail"] = tail.into();
    result["lag_p50_us"] = microseconds(&taken.lags, 50).into();
    result["lag_p99_us"] = microseconds(&taken.lags, 99).into();
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
