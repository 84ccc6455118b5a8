//! Loads that do not call for long: sessions that stay open, and streams that end before their time.

use std::io::{self, Read as _, Write as _};

use clap::Args;

use crate::client::Endpoint;
use crate::tools::Tool;

/// Which sessions to open.
#[derive(Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    endpoint: Endpoint,
    /// How many, each on a connection of its own.
    #[arg(long)]
    count: usize,
    /// Open the stream of what the server says unasked in each, on another connection.
    #[arg(long)]
    listening: bool,
}

/// Opens sessions, prints how many, and returns when standard input ends.
pub(crate) async fn run(plan: Plan) -> io::Result<()> {
    let clients = plan.endpoint.clients(plan.count).await?;
    let mut streams = Vec::new();
    if plan.listening {
        for client in &clients {
            streams.push(client.listen(plan.endpoint.port).await?);
        }
    }
    let open = serde_json::json!({ "sessions": clients.len(), "streams": streams.len() });
    writeln!(io::stdout(), "{open}")?;
    // Nothing else runs on this thread: open connections need no attention.
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Which streams to abandon.
#[derive(Args)]
pub(crate) struct Abandon {
    #[command(flatten)]
    endpoint: Endpoint,
    #[arg(long)]
    count: usize,
}

/// Begins calls that would never end, and closes each connection after the first event; a few connections at a time, so
/// that memory that grows is not that of many connections at once.
pub(crate) async fn abandon(plan: Abandon) -> io::Result<()> {
    const AT_ONCE: usize = 50;
    let mut left = plan.count;
    while left > 0 {
        let now = left.min(AT_ONCE);
        for client in plan.endpoint.clients(now).await? {
            client.abandon(Tool::Endless).await?;
        }
        left -= now;
    }
    writeln!(
        io::stdout(),
        "{}",
        serde_json::json!({ "streams": plan.count })
    )
}
