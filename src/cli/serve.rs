//! `tollgate serve`.

use std::{
    io::{self, IsTerminal},
    num::NonZeroUsize,
    path::PathBuf,
    process::ExitCode,
    thread,
    time::Duration,
};

use clap::ValueEnum;
use nix::sys::resource::{Resource, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    Exit,
    socket::{complain, config_fault, with_cause},
    style::counted,
};
use crate::{
    app::{self, Error, Handle, Options, load, status::Status},
    telemetry::{Format, Levels},
};

/// Run the gateway until it is told to stop.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
SIGHUP reads the policy again, SIGTERM and SIGINT finish what runs and stop (twice: stop at once).

Examples:
  tollgate serve --policy ./policy
  tollgate serve --log egress=debug,listen=debug --log-format json")]
pub(super) struct Args {
    /// Policy folder [default: $TOLLGATE_POLICY, /etc/tollgate, ~/.config/tollgate]
    #[arg(long, value_name = "DIR")]
    policy: Option<PathBuf>,
    /// Worker threads [default: one for each core]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Seconds that calls get to finish when the process stops
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    grace: u64,
    /// Log levels, as ROOM=LEVEL,…; a bare level is for all rooms
    #[arg(long, value_name = "LEVELS", default_value = "info")]
    log: String,
    /// How log lines look
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Auto)]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// Text on a terminal, else JSON
    Auto,
    /// For people
    Text,
    /// One object a line
    Json,
}

impl From<LogFormat> for Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Auto => Self::Auto,
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}

/// Runs until a signal or `tollgate drain` ends it.
pub(super) fn run(args: Args) -> ExitCode {
    match serve(args) {
        Ok(()) => Exit::Ok.into(),
        Err(exit) => exit.into(),
    }
}

fn serve(args: Args) -> Result<(), Exit> {
    let small_pages = small_pages();
    let undumped = keep_memory();
    let levels =
        Levels::install(args.log_format.into()).map_err(|error| told(&error, Exit::Internal))?;
    levels
        .set(&args.log)
        .map_err(|error| told(&error, Exit::Usage))?;
    if let Err(error) = small_pages {
        tracing::debug!(%error, "huge pages stay on");
    }
    if let Err(error) = undumped {
        tracing::warn!(%error, "a crash may leave secrets in a core file");
    }
    let folder =
        load::find_folder(args.policy.as_deref()).map_err(|fault| config_fault(&[fault]))?;
    let environment = load::environment();
    for name in &environment.proxies {
        tracing::warn!(name, "ignored: Tollgate uses no proxy on its way out");
    }
    let mut options = Options::new(load::Loader::new(folder, environment));
    options.workers = args.workers.unwrap_or(options.workers);
    options.grace = Duration::from_secs(args.grace);
    let running = app::start(options).map_err(|error| failed(&error))?;
    heed(running.handle())?;
    announce(&running.handle().status());
    running.wait().map_err(|error| failed(&error))?;
    tracing::info!("stopped");
    Ok(())
}

/// Memory in pages of the usual size. With huge pages (`always` in /sys/kernel/mm/transparent_hugepage/enabled) every
/// small corner of the allocator's room would hold 2 MiB: at rest, six times what is in use. Asked for before much is.
fn small_pages() -> nix::Result<()> {
    nix::sys::prctl::set_thp_disable(true)
}

/// Memory stays here: no core file where it crashes, and no other process of this user looks into it.
fn keep_memory() -> nix::Result<()> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    nix::sys::prctl::set_dumpable(false)
}

fn told(error: &dyn std::error::Error, exit: Exit) -> Exit {
    complain(&[with_cause(error)]);
    exit
}

fn failed(error: &Error) -> Exit {
    match error {
        Error::Config(faults) => config_fault(faults),
        Error::Thread(_) => told(error, Exit::Internal),
        _ => told(error, Exit::Failed),
    }
}

/// Says what runs: lines for a person, one event for a log.
fn announce(status: &Status) {
    let listeners: Vec<String> = status
        .listeners
        .iter()
        .map(|at| format!("{} {}", at.name, at.address))
        .collect();
    if !io::stderr().is_terminal() {
        tracing::info!(
            version = status.version,
            listeners = listeners.join(", "),
            policy = status.policy.folder,
            generation = status.policy.generation,
            identity = status.identity,
            caution = status.caution,
            "started"
        );
        return;
    }
    let mut lines = vec![format!("{} is ready", status.version)];
    lines.extend(listeners.iter().map(|listener| format!("  {listener}")));
    let policy = &status.policy;
    lines.push(format!(
        "  policy {}, generation {}, {}; callers: {}",
        policy.folder,
        policy.generation,
        counted(policy.servers, "server"),
        status.identity
    ));
    lines.push(format!("  {}", status.caution));
    complain(&lines);
}

/// Listens to signals on a thread of its own, which ends with the process.
fn heed(handle: Handle) -> Result<(), Exit> {
    let failed = |error: io::Error| told(&error, Exit::Internal);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::new().map_err(failed)?
    };
    let listen = move || runtime.block_on(async { while signals.next(&handle).await {} });
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(listen)
        .map_err(failed)?;
    Ok(())
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    ending: bool,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            ending: false,
        })
    }

    /// Waits for one signal and does what it means; false once no more can come.
    async fn next(&mut self, handle: &Handle) -> bool {
        let came = tokio::select! {
            came = self.terminate.recv() => came,
            came = self.interrupt.recv() => came,
            came = self.hangup.recv() => {
                if came.is_some() {
                    // What came of it is logged by the reload.
                    handle.reload();
                }
                return came.is_some();
            }
        };
        if self.ending {
            handle.cut();
        } else {
            handle.drain();
        }
        self.ending = true;
        came.is_some()
    }
}
