//! The thread of connections, with a runtime and a way out of its own: what is asked of a provider there runs to its end,
//! whoever waits for it or goes away.

use std::{
    path::PathBuf,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::{runtime::Runtime, sync::mpsc};

use super::{Error, core::Core, worker};
use crate::{
    audit::Journal,
    clock::Clock,
    config::Settings,
    connect::{Connections, Needs, Terms},
    egress::Egress,
    gateway::Gateway,
    listen::{Bound, Limits, Lobby, Socket},
    policy::Permit,
    store::Store,
    telemetry::Metrics,
    vault::Vault,
};

/// Connections that were made and whose servers' lists wait to be read, at most. What is too much is read with the first
/// request.
const MADE: usize = 64;

/// Connections of the web listener.
const BROWSERS: usize = 256;

/// What connections are made of.
pub(super) struct Parts {
    pub(super) store: Arc<Store>,
    pub(super) vault: Vault,
    pub(super) journal: Journal,
    pub(super) metrics: Arc<Metrics>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) terms: Arc<ArcSwap<Terms>>,
}

/// The thread before it runs.
pub(super) struct Idle {
    runtime: Runtime,
    egress: Egress,
    made: mpsc::Receiver<Permit>,
}

/// Connections, and the thread that does their work once it is started.
pub(super) fn open(
    settings: &Settings,
    parts: Parts,
    way_out: &worker::WayOut,
) -> Result<(Connections, Idle), Error> {
    let runtime = worker::runtime().map_err(Error::Thread)?;
    // What the way out begins runs in that thread; whoever starts a process may be in a runtime of its own.
    let egress = {
        let _within = runtime.enter();
        way_out.open(&settings.dns)?
    };
    let (told, made) = mpsc::channel(MADE);
    let connections = Connections::new(Needs {
        records: parts.store,
        vault: parts.vault,
        egress: egress.clone(),
        runtime: runtime.handle().clone(),
        journal: parts.journal,
        metrics: parts.metrics,
        clock: parts.clock,
        terms: parts.terms,
        spool: spool(settings),
        made: told,
    });
    let idle = Idle {
        runtime,
        egress,
        made,
    };
    Ok((connections, idle))
}

/// Where results wait that the database would not take.
pub(super) fn spool(settings: &Settings) -> PathBuf {
    settings.state_dir.join("spool")
}

/// The settings of all connections; `pages` is where the pages are where the file does not say so.
pub(super) fn terms(settings: &Settings, pages: &Arc<str>) -> Terms {
    Terms {
        public_url: settings.public_url.as_ref().unwrap_or(pages).clone(),
        client_metadata_url: settings.connect.client_metadata_url.clone(),
        return_to: settings.connect.return_to.clone(),
    }
}

/// Starts the thread, which also serves the pages.
pub(super) fn start(
    idle: Idle,
    shared: &worker::Shared,
    pages: Option<Bound>,
) -> Result<JoinHandle<()>, Error> {
    let Idle {
        runtime,
        egress,
        made,
    } = idle;
    let gateway = worker::through(shared, &egress);
    let (core, grace) = (shared.core.clone(), shared.grace);
    let pages = pages.and_then(|mut bound| bound.sockets.pop());
    let serve = async move {
        let work = work(&core, &egress, &gateway, made);
        tokio::join!(work, show(&core, pages, grace));
        core.stop.cancelled().await;
    };
    thread::Builder::new()
        .name("connect".to_owned())
        .spawn(move || runtime.block_on(serve))
        .map_err(Error::Thread)
}

/// Until the process drains, and what runs then has come to its end, and nobody asks for credentials any more.
async fn work(core: &Core, egress: &Egress, gateway: &Gateway, made: mpsc::Receiver<Permit>) {
    let work = async {
        tokio::join!(pin(gateway, made), worker::keep_up(core, egress, gateway));
    };
    tokio::select! {
        () = work => {}
        () = core.drain.cancelled() => {}
    }
    tokio::select! {
        () = core.connections.drain() => {}
        () = core.cut.cancelled() => {}
    }
}

/// Serves the pages until the process drains.
async fn show(core: &Core, socket: Option<Socket>, grace: Duration) {
    let Some(web) = &core.web else {
        return;
    };
    let limits = Limits {
        connections: BROWSERS,
        ..Limits::default()
    };
    let (metrics, drain) = (core.metrics.clone(), core.drain.clone());
    let lobby = Lobby::new(limits, core.tls.clone(), metrics, drain);
    tokio::select! {
        () = worker::attend(socket, &lobby, web.clone()) => {}
        () = worker::patience(core, grace) => {}
    }
    web.settle();
}

/// Reads what servers show to whom they did not know before.
async fn pin(gateway: &Gateway, mut made: mpsc::Receiver<Permit>) {
    while let Some(permit) = made.recv().await {
        gateway.connected(&permit).await;
    }
}
