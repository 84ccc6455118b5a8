//! The pipeline behind its own door, in the runtime of the test, which may move its time and count its tasks.

use std::{net::SocketAddr, path::Path, sync::Arc};

use arc_swap::ArcSwap;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{net::TcpStream, runtime::Handle, sync::mpsc};
use tokio_util::sync::CancellationToken;
use tollgate::{
    audit::{Journal, Options},
    catalog::{Catalog, Ledger},
    clock::SystemClock,
    config::Endpoint,
    connect::{self, Connections, Needs},
    egress::{Egress, TcpDialer},
    gateway::{Gateway, Shared},
    identity::Identity,
    listen::{Agents, Bound, Limits, Lobby, Origins, Recorder, Terms, accept},
    memory::Memory,
    policy::{Permit, Snapshot},
    store::Store,
    telemetry::Metrics,
    upstream::Upstream,
    vault::Keyring,
};

use super::{
    client::{Ask, Exchange},
    dialer::TableResolver,
};
use crate::egress::{ample, no_roots};

/// Where its pages would be.
pub(crate) const PAGES: &str = "https://gate.example";

/// A pipeline over real sockets. Its caller is the local user `ann`.
pub(crate) struct Pipeline {
    pub(crate) gateway: Gateway,
    pub(crate) connections: Connections,
    /// Connections that were made.
    pub(crate) made: mpsc::Receiver<Permit>,
    journal: Journal,
    pub(crate) metrics: Arc<Metrics>,
    folder: TempDir,
}

impl Pipeline {
    pub(crate) fn new() -> Self {
        Self::with(|store| Arc::new(store))
    }

    /// The same, with pins kept in what `ledger` makes of its store.
    pub(crate) fn with(ledger: impl FnOnce(Store) -> Arc<dyn Ledger>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let metrics = Arc::<Metrics>::default();
        let clock = Arc::new(SystemClock);
        let options = Options::new(folder.path().join("audit"));
        let journal = Journal::open(options, clock.clone(), &metrics).unwrap();
        let keyring = Keyring::open(&folder.path().join("keyring")).unwrap();
        let rounds = keyring.sealer("rounds");
        let store = Store::open(
            &folder.path().join("tollgate.db"),
            &keyring,
            metrics.clone(),
        )
        .unwrap();
        let egress = Egress::new(
            TableResolver::of(&[]),
            Arc::new(TcpDialer),
            no_roots(),
            ample(),
            metrics.clone(),
        );
        let (told, made) = mpsc::channel(16);
        let connections = Connections::new(Needs {
            records: Arc::new(beside(folder.path(), &keyring, &metrics)),
            vault: keyring.vault(),
            egress: egress.clone(),
            runtime: Handle::current(),
            journal: journal.clone(),
            metrics: metrics.clone(),
            clock: clock.clone(),
            terms: Arc::new(ArcSwap::from_pointee(connect::Terms {
                public_url: PAGES.into(),
                ..connect::Terms::default()
            })),
            spool: folder.path().join("spool"),
            made: told,
        });
        let shared = Shared::new(
            journal.clone(),
            metrics.clone(),
            clock,
            rounds,
            Catalog::new(ledger(store)),
            connections.clone(),
        );
        let upstream = Upstream::new(
            egress,
            Arc::default(),
            Arc::default(),
            Arc::default(),
            Arc::new(connections.clone()),
        );
        Self {
            gateway: Gateway::new(upstream, Arc::new(shared)),
            connections,
            made,
            journal,
            metrics,
            folder,
        }
    }

    /// What was recorded, once all of it is on disk.
    pub(crate) async fn records(&self) -> Vec<Value> {
        self.journal.close().await.unwrap();
        crate::audit::records(&self.folder.path().join("audit"))
    }

    /// Opens its door to agents, under `policy`.
    pub(crate) fn listen(&self, policy: Snapshot) -> Door {
        self.listen_to(Arc::new(policy), Identity::local("ann", "default"))
    }

    /// The same for callers of another kind.
    pub(crate) fn listen_to(&self, policy: Arc<Snapshot>, identity: Identity) -> Door {
        let terms = Terms {
            policy,
            origins: Origins::new(None, Vec::new(), false),
            request_bytes: 1 << 20,
            body: Limits::BODY,
        };
        let recorder = Recorder::new(
            self.journal.clone(),
            Arc::new(SystemClock),
            self.metrics.clone(),
        );
        let agents = Agents::new(
            self.gateway.clone(),
            identity,
            Arc::new(ArcSwap::from_pointee(terms)),
            recorder,
            Memory::new(Limits::BODIES),
        );
        let drain = CancellationToken::new();
        let lobby = Lobby::new(Limits::default(), None, self.metrics.clone(), drain);
        let endpoint = Endpoint::Tcp("127.0.0.1:0".parse().unwrap());
        let mut bound = Bound::new(&endpoint, 1).unwrap();
        let Endpoint::Tcp(address) = bound.address else {
            panic!("a TCP listener");
        };
        let socket = bound.sockets.pop().unwrap();
        tokio::spawn(accept(socket, lobby, agents));
        Door { address }
    }
}

/// The database of connections, whoever keeps the pins.
fn beside(folder: &Path, keyring: &Keyring, metrics: &Arc<Metrics>) -> Store {
    Store::open(&folder.join("connections.db"), keyring, metrics.clone()).unwrap()
}

/// Where agents connect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door {
    address: SocketAddr,
}

impl Door {
    /// Sends a request on a connection of its own and waits for nothing.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is an agent's side: it connects to Tollgate, on loopback"
    )]
    pub(crate) async fn leave(self, ask: Ask) -> Exchange {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let bytes = ask.bytes(&self.address.to_string());
        Exchange::unanswered(Box::new(stream), &bytes).await
    }

    /// Sends a request on a connection of its own and reads the head of its answer.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is an agent's side: it connects to Tollgate, on loopback"
    )]
    pub(crate) async fn open(self, ask: Ask) -> Exchange {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let bytes = ask.bytes(&self.address.to_string());
        let begun = Exchange::begin(Box::new(stream), &bytes).await;
        begun.expect("an answer")
    }
}
