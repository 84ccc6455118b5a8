//! From files to a running process. Nothing waits for a tool server, and nothing runs before records can be kept.

use std::{
    fs::{self, DirBuilder},
    num::NonZeroUsize,
    os::unix::{fs::DirBuilderExt, net::UnixListener},
    path::Path,
    sync::{Arc, Mutex, OnceLock, Weak, atomic::AtomicU64},
    thread,
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Error, Running, connect,
    core::{Core, Pending, terms},
    load::{Loaded, Loader, guard},
    ops,
    reload::{Outcome, Reloader},
    status::ListenerStatus,
    vault::{Guard, Place},
    web, worker,
};
use crate::{
    audit::{self, Journal, Record},
    catalog::Catalog,
    clock::{Clock, SystemClock},
    config::{self, Endpoint, Method, Settings},
    egress::{self, Egress},
    gateway,
    identity::Identity,
    listen::{self, Bound, Limits, Lobby, Tls, descriptors},
    memory::Memory,
    store::Store,
    telemetry::Metrics,
    tunnel,
    upstream::Breakers,
    vault::Keyring,
};

/// Descriptors that are not for calls: listeners, records, logs, name servers.
const RESERVED: usize = 128;

/// How to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where policy and settings come from.
    pub loader: Loader,
    /// Worker threads, each with its own runtime and connections.
    pub workers: NonZeroUsize,
    /// How long a drain waits for what runs.
    pub grace: Duration,
}

impl Options {
    /// One worker for each core, and 30 s of grace.
    pub fn new(loader: Loader) -> Self {
        Self {
            loader,
            workers: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            grace: Duration::from_secs(30),
        }
    }
}

/// Starts everything and returns once it accepts connections.
///
/// # Errors
///
/// Faults of the files, an address in use, records that cannot be kept. Nothing is left running then.
pub fn start(options: Options) -> Result<Running, Error> {
    let slot: Arc<OnceLock<Weak<Core>>> = Arc::default();
    let reloader = Reloader::start(options.loader, {
        let slot = slot.clone();
        move |outcome: &Outcome, loaded: &Loaded| {
            if let Some(core) = slot.get().and_then(Weak::upgrade) {
                core.took_up(outcome, loaded);
            }
        }
    })
    .map_err(Error::Config)?;
    let loaded = reloader.current_full();
    make_state_dir(&loaded.settings.state_dir)?;
    // The control socket also keeps a second process away from this state.
    let socket = loaded.settings.control_socket();
    let control = listen::unix(&socket, 0o600).map_err(|error| match error {
        listen::Error::InUse(_) => Error::Running(loaded.settings.state_dir.clone()),
        error => failed("control")(error),
    })?;
    let running = assemble(reloader, options.workers).and_then(|assembled| {
        // A slot that was empty until now takes it.
        drop(slot.set(Arc::downgrade(&assembled.core)));
        run(assembled, control, options.grace)
    });
    running.inspect_err(|_| drop(fs::remove_file(&socket)))
}

/// A process that only has to run.
struct Assembled {
    core: Arc<Core>,
    doors: Doors,
    way_out: worker::WayOut,
    connecting: connect::Idle,
}

/// Opens the records first, then the keyring, the database, and the doors: what comes in is taken down from the first request on.
fn assemble(reloader: Reloader, workers: NonZeroUsize) -> Result<Assembled, Error> {
    let loaded = reloader.current_full();
    let metrics = Arc::new(Metrics::new());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let journal = Journal::open(records(&loaded.settings), clock.clone(), &metrics)?;
    let place = Place::new(&loaded.settings, reloader.loader().folder())?;
    let keyring = place.open()?;
    let guard = Guard::new(&loaded.settings, place, &keyring)?;
    let store = open_store(&loaded.settings.store, &keyring, &metrics)?;
    // Before anything is taken up again; what it means is told once records can be.
    store.refuse_older(guard.is_older(store.found()));
    let doors = Doors::open(&loaded, workers)?;
    let way_out = worker::WayOut {
        roots: egress::Tls::new(),
        answers: Memory::new(Egress::ANSWERS),
        metrics: metrics.clone(),
    };
    let pages = web::address(&loaded.settings.listen, doors.web.as_ref());
    let connect_terms = connect::terms(&loaded.settings, &pages);
    let connect_terms = Arc::new(ArcSwap::from_pointee(connect_terms));
    let parts = connect::Parts {
        store: store.clone(),
        vault: keyring.vault(),
        journal: journal.clone(),
        metrics: metrics.clone(),
        clock: clock.clone(),
        terms: connect_terms.clone(),
    };
    let (connections, connecting) = connect::open(&loaded.settings, parts, &way_out)?;
    let shared = gateway::Shared::new(
        journal.clone(),
        metrics.clone(),
        clock.clone(),
        keyring.sealer("rounds"),
        Catalog::new(store.clone()),
        connections.clone(),
    );
    let identity = identity(&loaded.settings, clock.clone());
    let tunnels = tunnel::Shared::new(
        identity.clone(),
        loaded.policy.clone(),
        journal.clone(),
        clock.clone(),
        metrics.clone(),
    );
    let reloader = Arc::new(reloader);
    let parts = web::Parts {
        connections: connections.clone(),
        identity: identity.clone(),
        store: store.clone(),
        journal: journal.clone(),
        metrics: metrics.clone(),
        clock: clock.clone(),
        terms: connect_terms.clone(),
    };
    let web = doors.web.as_ref();
    let web = web.map(|_| web::open(parts, &keyring, reloader.clone()));
    let core = Core {
        terms: Arc::new(ArcSwap::from_pointee(terms(&loaded))),
        tls: doors.tls.clone(),
        identity,
        connections,
        connect_terms,
        gateway: Arc::new(shared),
        tunnels: Arc::new(tunnels),
        eras: Arc::default(),
        breakers: Arc::new(Breakers::new(metrics.clone())),
        drain: CancellationToken::new(),
        cut: CancellationToken::new(),
        stop: CancellationToken::new(),
        workers: workers.get(),
        listeners: doors.status(),
        pending: Mutex::new(Pending::default()),
        web,
        pages,
        reloader,
        journal,
        store,
        guard,
        metrics,
        clock,
        started: Instant::now(),
    };
    core.metrics.policy_loaded(loaded.policy.generation);
    core.record(Record::lifecycle(core.clock.now(), "start"));
    core.judge_age(core.store.found());
    Ok(Assembled {
        core: Arc::new(core),
        doors,
        way_out,
        connecting,
    })
}

fn run(assembled: Assembled, control: UnixListener, grace: Duration) -> Result<Running, Error> {
    let Assembled {
        core,
        doors,
        way_out,
        connecting,
    } = assembled;
    let loaded = core.reloader.current_full();
    let mut sockets = vec![loaded.settings.control_socket()];
    let agents = doors.agents.as_ref().map(|agents| agents.address.clone());
    if let Some(Endpoint::Unix(path)) = &agents {
        sockets.push(path.clone());
    }
    let egress = doors.egress.as_ref().map(|egress| egress.address.clone());
    let ops = doors.ops.as_ref().map(|ops| ops.address.clone());
    let web = doors.web.as_ref().map(|web| web.address.clone());
    let lobby = |connections| {
        let limits = Limits {
            connections,
            ..Limits::default()
        };
        let (metrics, drain) = (core.metrics.clone(), core.drain.clone());
        Lobby::new(limits, doors.tls.clone(), metrics, drain)
    };
    let (calls, proxied) = seats(descriptors().saturating_sub(RESERVED));
    let shared = worker::Shared {
        agents_lobby: lobby(calls),
        egress_lobby: lobby(proxied),
        way_out,
        bodies: Memory::new(Limits::BODIES),
        // Some servers take 0 for no id.
        ids: Arc::new(AtomicU64::new(1)),
        core: core.clone(),
        grace,
    };
    let sockets_of = |bound: Option<Bound>| bound.map(|bound| bound.sockets).unwrap_or_default();
    let (agents_sockets, egress_sockets) = (sockets_of(doors.agents), sockets_of(doors.egress));
    let doors_of_workers = worker::Sockets::of_each(agents_sockets, egress_sockets);
    let connect_thread =
        connect::start(connecting, &shared, doors.web).inspect_err(|_| core.cut_all())?;
    let workers = worker::start_all(doors_of_workers, &shared).inspect_err(|_| core.cut_all())?;
    let ops_thread = ops::start(shared, control, doors.ops).inspect_err(|_| core.cut_all())?;
    Ok(Running {
        core,
        workers,
        ops_thread,
        connect_thread,
        agents,
        egress,
        ops,
        web,
        sockets,
    })
}

/// Connections of the agents listener and of the egress listener, each of which may need two descriptors. Neither can
/// take all of them from the other.
fn seats(descriptors: usize) -> (usize, usize) {
    let calls = Limits::default().connections.min(descriptors / 2);
    (calls, descriptors / 20 * 9)
}

/// The listeners of a process, bound.
struct Doors {
    agents: Option<Bound>,
    egress: Option<Bound>,
    ops: Option<Bound>,
    web: Option<Bound>,
    tls: Option<Tls>,
}

impl Doors {
    fn open(loaded: &Loaded, workers: NonZeroUsize) -> Result<Self, Error> {
        let listen = &loaded.settings.listen;
        let tls = loaded
            .tls
            .as_ref()
            .map(|material| Tls::from_pem(&material.chain, material.key.expose()));
        let agents = listen
            .agents
            .as_ref()
            .map(|agents| Bound::new(agents, workers.get()));
        let egress = listen
            .egress
            .map(|egress| Bound::new(&Endpoint::Tcp(egress), workers.get()));
        let ops = listen.ops.map(|ops| Bound::new(&Endpoint::Tcp(ops), 1));
        let web = listen.web.map(|web| Bound::new(&Endpoint::Tcp(web), 1));
        Ok(Self {
            agents: agents.transpose().map_err(failed("agents"))?,
            egress: egress.transpose().map_err(failed("egress"))?,
            ops: ops.transpose().map_err(failed("ops"))?,
            web: web.transpose().map_err(failed("web"))?,
            tls: tls.transpose().map_err(failed("agents"))?,
        })
    }

    fn status(&self) -> Vec<ListenerStatus> {
        let of = |name: &str, bound: &Option<Bound>, tls| {
            bound.as_ref().map(|bound| ListenerStatus {
                name: name.to_owned(),
                address: bound.address.to_string(),
                tls,
            })
        };
        let tls = self.tls.is_some();
        let listeners = [
            of("agents", &self.agents, tls),
            of("egress", &self.egress, tls),
            of("ops", &self.ops, false),
            of("web", &self.web, tls),
        ];
        listeners.into_iter().flatten().collect()
    }
}

fn failed(name: &'static str) -> impl FnOnce(listen::Error) -> Error {
    move |source| Error::Listen { name, source }
}

pub(super) fn make_state_dir(path: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| Error::State {
        path: path.to_owned(),
        source,
    })?;
    // Whoever can write here can put a control socket and a folder of records of his own in their places.
    guard::check(path, path).map_err(Error::LooseState)
}

pub(super) fn open_store(
    path: &Path,
    keyring: &Keyring,
    metrics: &Arc<Metrics>,
) -> Result<Arc<Store>, Error> {
    let folder = path.parent().unwrap_or(path);
    // As with the state folder: whoever can write there can put a database of his own in its place. One that is missing
    // is told of with the database.
    if folder.is_dir() {
        guard::check(folder, folder).map_err(Error::LooseState)?;
    }
    let store = Store::open(path, keyring, metrics.clone())?;
    Ok(Arc::new(store))
}

pub(super) fn records(settings: &Settings) -> audit::Options {
    audit::Options {
        on_failure: match settings.audit.on_failure {
            config::OnFailure::Stop => audit::OnFailure::Stop,
            config::OnFailure::Reads => audit::OnFailure::Reads,
        },
        ..audit::Options::new(settings.state_dir.join("audit"))
    }
}

fn identity(settings: &Settings, clock: Arc<dyn Clock>) -> Identity {
    match &settings.identity.method {
        Method::Local { user, tenant } => Identity::local(user, tenant),
        Method::Keys => Identity::keys(clock),
    }
}
