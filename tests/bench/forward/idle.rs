//! Tunnels that stay open and carry nothing more.

use std::io::{self, Read as _, Write as _};
use std::time::{Duration, Instant};

use clap::Args;

use super::SMALL;
use super::requests::answer;
use super::route::Endpoint;

/// Between two openings: no faster than a crowd of agents that starts, and no burst of a backlog's length.
const PACE: Duration = Duration::from_micros(500);

/// How many tunnels to open.
#[derive(Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    endpoint: Endpoint,
    #[arg(long)]
    count: usize,
}

/// Opens tunnels one after the other, has one request answered in each, prints how many there are, and returns when
/// standard input ends.
pub(crate) async fn run(plan: Plan) -> io::Result<()> {
    let begin = Instant::now();
    let mut open = Vec::new();
    let mut body = Vec::new();
    for (number, route) in plan.endpoint.routes(plan.count)?.into_iter().enumerate() {
        tokio::time::sleep_until((begin + PACE * number as u32).into()).await;
        let mut wire = route.tunnel(&route.opening(SMALL)).await?;
        answer(&mut wire, &mut body).await?;
        open.push(wire);
    }
    let seconds = begin.elapsed().as_secs_f64();
    let report = serde_json::json!({ "tunnels": open.len(), "seconds": seconds });
    writeln!(io::stdout(), "{report}")?;
    // Nothing else runs on this thread: open connections need no attention.
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
