//! So many clients, each with one request at a time.

use std::io::{self, Error, Write as _};
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, ValueEnum};

use super::route::{Endpoint, Route, agreed};
use super::{BODY, SMALL};
use crate::window::{Span, Window, microseconds};
use crate::wire::Wire;

/// What requests are made on.
#[derive(Clone, Copy, ValueEnum)]
enum Way {
    /// A connection that is kept.
    Kept,
    /// A connection each.
    Fresh,
    /// A tunnel each.
    Tunnel,
}

/// What to ask, and for how long.
#[derive(Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    endpoint: Endpoint,
    #[arg(long)]
    connections: usize,
    #[arg(long, value_enum)]
    way: Way,
    #[command(flatten)]
    span: Span,
}

/// Loads, and prints what it took as one line of JSON. Any request that fails ends the run.
pub(crate) async fn run(plan: Plan) -> io::Result<()> {
    let routes = plan.endpoint.routes(plan.connections)?;
    let way = plan.way;
    let load = |route, window| load(route, way, window);
    let (used, took) = plan.span.run(routes, load).await?;
    let mut took = took.concat();
    took.sort_unstable();
    let mut result = plan.span.report(&used)?;
    result["p50_us"] = microseconds(&took, 50).into();
    result["p99_us"] = microseconds(&took, 99).into();
    writeln!(io::stdout(), "{result}")
}

/// Asks until the window ends; gives what the requests within took, in nanoseconds.
async fn load(route: Route, way: Way, window: Arc<Window>) -> io::Result<Vec<u64>> {
    let (request, opening) = (route.request(SMALL), route.opening(SMALL));
    let mut kept = match way {
        Way::Kept => Some(route.connect().await?),
        Way::Fresh | Way::Tunnel => None,
    };
    let mut body = Vec::new();
    let mut took = Vec::new();
    let mut now = Instant::now();
    while now < window.end {
        match (&mut kept, way) {
            (Some(wire), _) => ask(wire, &request, &mut body).await?,
            (None, Way::Tunnel) => answer(&mut route.tunnel(&opening).await?, &mut body).await?,
            (None, _) => ask(&mut route.connect().await?, &request, &mut body).await?,
        }
        window.count(1);
        let begun = std::mem::replace(&mut now, Instant::now());
        if now >= window.begin {
            took.push((now - begun).as_nanos().try_into().unwrap_or(u64::MAX));
        }
    }
    Ok(took)
}

async fn ask(wire: &mut Wire, request: &[u8], body: &mut Vec<u8>) -> io::Result<()> {
    wire.write(request).await?;
    answer(wire, body).await
}

/// Reads an answer, and checks it.
pub(super) async fn answer(wire: &mut Wire, body: &mut Vec<u8>) -> io::Result<()> {
    let head = agreed(wire.head().await?)?;
    let mut framing = head.body();
    body.clear();
    while wire.piece(&mut framing, body).await? {}
    match body.len() == BODY && body.iter().all(|byte| *byte == b'x') {
        true => Ok(()),
        false => Err(Error::other(format!(
            "a body of {} bytes is not the one asked for",
            body.len()
        ))),
    }
}
