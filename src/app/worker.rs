//! A worker: one thread, one runtime, one way out; it shares the port with the others.

use std::{
    io,
    sync::{
        Arc,
        atomic::AtomicU64,
        mpsc::{self, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    runtime::{Builder, Runtime},
    time::{MissedTickBehavior, interval, sleep},
};

use super::{Error, core::Core, load::Loaded};
use crate::{
    config,
    egress::{self, Dns, DnsSettings, DnsSetupError, Egress, TcpDialer},
    gateway::Gateway,
    listen::{Agents, Lobby, Recorder, Serve, Socket, accept},
    memory::Memory,
    telemetry::Metrics,
    tunnel::Proxy,
    upstream::Upstream,
};

/// How often a worker looks after its connections and for changed settings.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// What workers share beyond [`Core`].
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) core: Arc<Core>,
    pub(super) agents_lobby: Lobby,
    pub(super) egress_lobby: Lobby,
    pub(super) way_out: WayOut,
    pub(super) bodies: Memory,
    pub(super) ids: Arc<AtomicU64>,
    pub(super) grace: Duration,
}

/// What every way out is made of.
#[derive(Clone)]
pub(super) struct WayOut {
    pub(super) roots: egress::Tls,
    pub(super) answers: Memory,
    pub(super) metrics: Arc<Metrics>,
}

impl WayOut {
    /// A way out of the runtime that this is called in.
    pub(super) fn open(&self, configured: &config::Dns) -> Result<Egress, DnsSetupError> {
        let resolver = Dns::new(&dns(configured)?)?;
        Ok(Egress::new(
            Arc::new(resolver),
            Arc::new(TcpDialer),
            self.roots.clone(),
            self.answers.clone(),
            self.metrics.clone(),
        ))
    }
}

/// The sockets of one worker.
pub(super) struct Sockets {
    agents: Option<Socket>,
    egress: Option<Socket>,
}

impl Sockets {
    /// Those of each worker; a listener that is off has none.
    pub(super) fn of_each(agents: Vec<Socket>, egress: Vec<Socket>) -> Vec<Self> {
        let workers = agents.len().max(egress.len());
        let (mut agents, mut egress) = (agents.into_iter(), egress.into_iter());
        let sockets = (0..workers).map(|_| Self {
            agents: agents.next(),
            egress: egress.next(),
        });
        sockets.collect()
    }
}

/// Starts one thread for each worker's sockets and returns once all of them accept.
pub(super) fn start_all(
    sockets: Vec<Sockets>,
    shared: &Shared,
) -> Result<Vec<JoinHandle<()>>, Error> {
    let (told, ready) = mpsc::channel();
    let mut threads = Vec::with_capacity(sockets.len());
    for (number, sockets) in sockets.into_iter().enumerate() {
        let (shared, told) = (shared.clone(), told.clone());
        let work = move || run(sockets, &shared, told);
        let thread = thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(work);
        threads.push(thread.map_err(Error::Thread)?);
    }
    drop(told);
    // The channel closes early only where a worker panicked, and that thread's end shows it.
    ready.into_iter().collect::<Result<(), Error>>()?;
    Ok(threads)
}

fn run(sockets: Sockets, shared: &Shared, told: Sender<Result<(), Error>>) {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return drop(told.send(Err(Error::Thread(error)))),
    };
    runtime.block_on(async {
        let egress = match way_out(shared) {
            Ok(egress) => egress,
            Err(error) => return drop(told.send(Err(error.into()))),
        };
        drop(told.send(Ok(())));
        // Whoever starts us waits until nobody can send any more.
        drop(told);
        work(sockets, shared, egress).await;
    });
    // What the grace period did not suffice for is dropped here, and leaves its record as it goes.
    drop(runtime);
}

/// A runtime of one thread.
pub(super) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

fn way_out(shared: &Shared) -> Result<Egress, DnsSetupError> {
    let loaded = shared.core.reloader.current_full();
    shared.way_out.open(&loaded.settings.dns)
}

/// The resolver's settings: those of the file, else the machine's.
pub(crate) fn dns(configured: &config::Dns) -> Result<DnsSettings, DnsSetupError> {
    let mut settings = if configured.servers.is_empty() {
        DnsSettings::from_system()?
    } else {
        DnsSettings {
            servers: configured.servers.clone(),
            ..DnsSettings::default()
        }
    };
    let zones = configured.zones.iter();
    settings.zones = zones
        .map(|zone| egress::Zone {
            suffix: zone.suffix.to_string(),
            servers: zone.servers.clone(),
        })
        .collect();
    Ok(settings)
}

/// A pipeline with a way out of its own, for what the operator asks; dropped with its connections.
pub(super) fn pipeline(shared: &Shared) -> Result<Gateway, DnsSetupError> {
    way_out(shared).map(|egress| through(shared, &egress))
}

/// The pipeline over `egress`.
pub(super) fn through(shared: &Shared, egress: &Egress) -> Gateway {
    let core = &shared.core;
    let (eras, breakers) = (core.eras.clone(), core.breakers.clone());
    let credentials = Arc::new(core.connections.clone());
    let ids = shared.ids.clone();
    let upstream = Upstream::new(egress.clone(), eras, breakers, ids, credentials);
    Gateway::new(upstream, core.gateway.clone())
}

async fn work(sockets: Sockets, shared: &Shared, egress: Egress) {
    let core = &shared.core;
    let gateway = through(shared, &egress);
    let caretaker = gateway.clone();
    let recorder = Recorder::new(
        core.journal.clone(),
        core.clock.clone(),
        core.metrics.clone(),
    );
    let agents = Agents::new(
        gateway,
        core.identity.clone(),
        core.terms.clone(),
        recorder,
        shared.bodies.clone(),
    );
    let proxy = Proxy::new(egress.clone(), core.tunnels.clone());
    let accepting = async {
        tokio::join!(
            attend(sockets.agents, &shared.agents_lobby, agents),
            attend(sockets.egress, &shared.egress_lobby, proxy),
        )
    };
    tokio::select! {
        _ = accepting => {}
        () = keep_up(core, &egress, &caretaker) => {}
        () = patience(core, shared.grace) => tracing::warn!("the grace period is over; calls are cut off"),
    }
}

/// Serves a listener to its end, if there is one.
pub(super) async fn attend(socket: Option<Socket>, lobby: &Lobby, server: impl Serve) {
    let Some(socket) = socket else {
        return;
    };
    if let Err(error) = accept(socket, lobby.clone(), server).await {
        tracing::error!(%error, "a worker cannot accept");
    }
}

/// The end of patience with calls that outlast a drain.
pub(super) async fn patience(core: &Core, grace: Duration) {
    core.drain.cancelled().await;
    tokio::select! {
        () = sleep(grace) => {}
        () = core.cut.cancelled() => {}
    }
}

/// Closes idle connections and sessions in time, connections of an older policy at once, and asks other name servers
/// when they change.
pub(super) async fn keep_up(core: &Core, egress: &Egress, gateway: &Gateway) {
    let mut loaded = core.reloader.current_full();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        egress.sweep();
        let now = core.reloader.current_full();
        gateway.sweep(&now.policy);
        if !Arc::ptr_eq(&now, &loaded) {
            egress.retire(now.policy.generation);
            ask_others(&loaded, &now, egress);
            loaded = now;
        }
    }
}

fn ask_others(before: &Loaded, now: &Loaded, egress: &Egress) {
    if before.settings.dns == now.settings.dns {
        return;
    }
    match dns(&now.settings.dns).and_then(|settings| Dns::new(&settings)) {
        Ok(resolver) => egress.use_resolver(Arc::new(resolver)),
        Err(error) => tracing::error!(%error, "the name servers were not taken; those before stay"),
    }
}
