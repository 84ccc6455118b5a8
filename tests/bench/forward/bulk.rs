//! Bytes through so many tunnels, in one direction.

use std::io::{self, Error, Write as _};
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, ValueEnum};

use super::route::{Endpoint, Route};
use super::{SINK, SOURCE};
use crate::window::{Span, Window};

/// Bytes of a read or a write.
const PIECE: usize = 256 * 1024;

/// Which way the bytes go.
#[derive(Clone, Copy, ValueEnum)]
enum Direction {
    /// From the upstream to the client.
    Down,
    /// From the client to the upstream.
    Up,
}

/// How many tunnels, and for how long.
#[derive(Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    endpoint: Endpoint,
    #[arg(long)]
    connections: usize,
    #[arg(long, value_enum)]
    direction: Direction,
    #[command(flatten)]
    span: Span,
}

/// Loads, and prints as one line of JSON what it took; what is counted are bytes.
pub(crate) async fn run(plan: Plan) -> io::Result<()> {
    let routes = plan.endpoint.routes(plan.connections)?;
    let direction = plan.direction;
    let load = move |route: Route, window: Arc<Window>| async move {
        match direction {
            Direction::Down => down(&route, &window).await,
            Direction::Up => up(&route, &window).await,
        }
    };
    let (used, _) = plan.span.run(routes, load).await?;
    writeln!(io::stdout(), "{}", plan.span.report(&used)?)
}

async fn down(route: &Route, window: &Window) -> io::Result<()> {
    let mut wire = route.tunnel(&route.opening(SOURCE)).await?;
    let mut piece = vec![0; PIECE];
    while Instant::now() < window.end {
        match wire.read(&mut piece).await? {
            0 => return Err(Error::other("the tunnel ended before its time")),
            count => window.count(count as u64),
        }
    }
    Ok(())
}

async fn up(route: &Route, window: &Window) -> io::Result<()> {
    let mut wire = route.tunnel(&route.opening(SINK)).await?;
    let piece = vec![b'x'; PIECE];
    while Instant::now() < window.end {
        wire.write(&piece).await?;
        window.count(piece.len() as u64);
    }
    Ok(())
}
