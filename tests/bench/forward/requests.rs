//! One request at a time on each of so many clients: on a connection that is kept, or in a tunnel of its own each.

use std::io::{self, Error, Write as _};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;

use super::route::{Endpoint, Route, agreed};
use super::{BODY, SMALL};
use crate::window::{Span, Window, microseconds};
use crate::wire::Wire;

/// What to ask, and for how long.
#[derive(Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    endpoint: Endpoint,
    #[arg(long)]
    connections: usize,
    /// Open a tunnel for each request, and close it with the answer.
    #[arg(long)]
    tunnels: bool,
    #[command(flatten)]
    span: Span,
}

/// Loads, and prints what it took as one line of JSON. Any request that fails ends the run.
pub(crate) async fn run(plan: Plan) -> io::Result<()> {
    let routes = plan.endpoint.routes(plan.connections)?;
    let tunnels = plan.tunnels;
    let load = move |route: Route, window: Arc<Window>| async move {
        match tunnels {
            true => each_in_a_tunnel(route, &window).await,
            false => kept(route, &window).await,
        }
    };
    let (used, took) = plan.span.run(routes, load).await?;
    let mut took = took.concat();
    took.sort_unstable();
    let mut result = plan.span.report(&used)?;
    result["p50_us"] = microseconds(&took, 50).into();
    result["p99_us"] = microseconds(&took, 99).into();
    writeln!(io::stdout(), "{result}")
}

/// What was measured of requests that were answered after the window began, in nanoseconds.
struct Taken<'a> {
    window: &'a Window,
    now: Instant,
    took: Vec<u64>,
}

impl<'a> Taken<'a> {
    fn begin(window: &'a Window) -> Self {
        Self {
            window,
            now: Instant::now(),
            took: Vec::new(),
        }
    }

    fn goes_on(&self) -> bool {
        self.now < self.window.end
    }

    fn answered(&mut self) {
        self.window.count(1);
        let begun = std::mem::replace(&mut self.now, Instant::now());
        if self.now >= self.window.begin {
            let took = (self.now - begun).as_nanos();
            self.took.push(took.try_into().unwrap_or(u64::MAX));
        }
    }
}

/// On one connection, or on the next where the proxy closes it.
async fn kept(route: Route, window: &Window) -> io::Result<Vec<u64>> {
    let request = route.request(SMALL);
    let mut wire = route.connect().await?;
    let mut body = Vec::new();
    let mut taken = Taken::begin(window);
    while taken.goes_on() {
        wire.write(&request).await?;
        if !answer(&mut wire, &mut body).await? {
            wire = route.connect().await?;
        }
        taken.answered();
    }
    Ok(taken.took)
}

async fn each_in_a_tunnel(route: Route, window: &Window) -> io::Result<Vec<u64>> {
    let opening = route.opening(SMALL);
    let mut body = Vec::new();
    let mut taken = Taken::begin(window);
    while taken.goes_on() {
        let mut wire = route.tunnel(&opening).await?;
        answer(&mut wire, &mut body).await?;
        drop(wire);
        taken.answered();
    }
    Ok(taken.took)
}

/// Reads and checks an answer; whether the connection can be used again.
pub(super) async fn answer(wire: &mut Wire, body: &mut Vec<u8>) -> io::Result<bool> {
    let head = agreed(wire.head().await?)?;
    let mut framing = head.body();
    body.clear();
    while wire.piece(&mut framing, body).await? {}
    match body.len() == BODY && body.iter().all(|byte| *byte == b'x') {
        true => Ok(!head.closes()),
        false => Err(Error::other(format!(
            "a body of {} bytes is not the one asked for",
            body.len()
        ))),
    }
}
