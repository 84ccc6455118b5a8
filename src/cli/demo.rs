//! `tollgate demo`.

use std::{
    env,
    io::{self, Write},
    net::SocketAddr,
    num::NonZeroUsize,
    process::ExitCode,
    time::Duration,
};

use tokio::signal::unix::{SignalKind, signal};

use super::{
    Exit,
    socket::{complain, config_fault, with_cause},
    style::Styles,
};
use crate::{
    app::{self, Options, Running, load::Loader},
    config::{Endpoint, Environment},
    demo::{Client, DemoError, Folder, NameServer, Screen, ToolServer, Walk},
};

/// How long the demo's tool takes to count one number.
const TICK: Duration = Duration::from_millis(250);

/// See it work: a tool server, a name server and Tollgate on loopback, and what it lets through and what not.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing else need be installed, and nothing leaves this machine.

Examples:
  tollgate demo           walk through, then stay up with commands to try
  tollgate demo --once    walk through and leave; exit code 1 if a step went wrong")]
pub(super) struct Args {
    /// Leave after the walk
    #[arg(long)]
    once: bool,
}

/// Shows the walk; exit code 1 if a step went otherwise than it should.
pub(super) fn run(args: Args) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&[with_cause(&error)]);
            return Exit::Internal.into();
        }
    };
    match runtime.block_on(show(args.once)) {
        Ok(true) => Exit::Ok.into(),
        Ok(false) => Exit::Failed.into(),
        Err(exit) => exit.into(),
    }
}

async fn show(once: bool) -> Result<bool, Exit> {
    let tools = ToolServer::start(TICK)
        .await
        .map_err(DemoError::Listen)
        .map_err(told)?;
    let names = NameServer::start()
        .await
        .map_err(DemoError::Listen)
        .map_err(told)?;
    let folder = Folder::create(tools.address(), names.address()).map_err(told)?;
    let (running, gateway) = start(&folder)?;

    let mut out = io::stdout();
    let colour = Styles::stdout().on();
    introduce(&mut out, gateway, &folder, colour).map_err(unseen)?;
    let mut walk = Walk {
        client: &Client::new(gateway),
        tools: &tools,
        names: &names,
        records: &folder.records(),
        screen: Screen::new(&mut out, colour),
    };
    let walked = tokio::select! {
        walked = walk.run() => walked.map_err(broken_off),
        () = interrupted() => Err(Exit::Failed),
    };
    let mut invited = Ok(());
    if walked.is_ok() && !once {
        invited = invite(&mut out, gateway, &folder, colour).map_err(unseen);
        if invited.is_ok() {
            interrupted().await;
        }
    }
    stop(running).await?;
    invited.and(walked)
}

/// Starts Tollgate as `serve` does, with the demo's folder in place of the operator's.
fn start(folder: &Folder) -> Result<(Running, SocketAddr), Exit> {
    // The operator's own environment is for the operator's own Tollgate.
    let options = Options {
        workers: NonZeroUsize::MIN,
        grace: Duration::from_secs(1),
        ..Options::new(Loader::new(folder.policy(), Environment::default()))
    };
    let running = app::start(options).map_err(failed)?;
    match running.agents() {
        Some(Endpoint::Tcp(address)) => {
            let address = *address;
            Ok((running, address))
        }
        _ => Err(told(DemoError::Answer("it listens nowhere".to_owned()))),
    }
}

/// Waits for Ctrl-C, or for being told to end.
async fn interrupted() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

async fn stop(running: Running) -> Result<(), Exit> {
    running.handle().drain();
    match tokio::task::spawn_blocking(|| running.wait()).await {
        Ok(ended) => ended.map_err(failed),
        Err(error) => Err(told(error)),
    }
}

fn introduce(
    out: &mut dyn Write,
    gateway: SocketAddr,
    folder: &Folder,
    colour: bool,
) -> io::Result<()> {
    let mut screen = Screen::new(out, colour);
    screen.title(&format!(
        "Tollgate {} stands at {gateway}",
        env!("CARGO_PKG_VERSION")
    ))?;
    screen.note("Agents point their MCP client at it; tool servers are reached through it and nowhere else.")?;
    screen.note(&format!(
        "Its policy, six short files: {}",
        folder.policy().display()
    ))
}

/// What to try next, ready to be pasted.
fn invite(
    out: &mut dyn Write,
    gateway: SocketAddr,
    folder: &Folder,
    colour: bool,
) -> io::Result<()> {
    let mut screen = Screen::new(out, colour);
    screen.title("Your turn")?;
    screen.note("Everything stays up until Ctrl-C. Point any MCP client at the first URL, or paste the commands.")?;
    for server in ["tools", "metadata", "private", "rebinding"] {
        screen.plain(&format!("http://{gateway}/mcp/{server}"))?;
    }
    let program = env::current_exe().unwrap_or_else(|_| "tollgate".into());
    let (program, policy) = (program.display(), folder.policy());
    for (caption, command) in [
        ("List the tools:", curl(gateway, "tools/list", "")),
        (
            "Call a tool that only reads; it is answered:",
            curl(gateway, "tools/call", "get_time"),
        ),
        (
            "Call a tool that acts; it is refused, as nobody approves it:",
            curl(gateway, "tools/call", "send_message"),
        ),
        (
            "Ask Tollgate how it is:",
            format!("{program} status --policy {}", policy.display()),
        ),
        (
            "Watch the records:",
            format!("tail -f {}/*.jsonl", folder.records().display()),
        ),
    ] {
        screen.plain("")?;
        screen.note(caption)?;
        screen.plain(&command)?;
    }
    Ok(())
}

/// A request of the current protocol as a curl command; `tool` is empty for a list.
fn curl(gateway: SocketAddr, method: &str, tool: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let (header, name) = if tool.is_empty() {
        (String::new(), String::new())
    } else {
        (
            format!(" -H 'Mcp-Name: {tool}'"),
            format!(r#""name":"{tool}","arguments":{{}},"#),
        )
    };
    format!(
        "curl -s http://{gateway}/mcp/tools -H 'Content-Type: application/json' \
         -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2026-07-28' \
         -H 'Mcp-Method: {method}'{header} \
         -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{{name}{meta}}}}}'"
    )
}

/// Ends the walk; that nobody reads on, as behind `head`, is nothing to tell.
fn broken_off(error: DemoError) -> Exit {
    match error {
        DemoError::Screen(cause) => unseen(cause),
        error => told(error),
    }
}

fn unseen(cause: io::Error) -> Exit {
    if cause.kind() == io::ErrorKind::BrokenPipe {
        return Exit::Failed;
    }
    told(DemoError::Screen(cause))
}

fn told(error: impl std::error::Error) -> Exit {
    complain(&[with_cause(&error)]);
    Exit::Failed
}

fn failed(error: app::Error) -> Exit {
    match error {
        app::Error::Config(faults) => config_fault(&faults),
        error => told(error),
    }
}
