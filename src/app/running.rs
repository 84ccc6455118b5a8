//! A process that runs, as seen by whoever started it.

use std::{fmt, path::PathBuf, sync::Arc, thread::JoinHandle};

use super::{Error, core::Core, reload::Outcome, status::Status, worker};
use crate::{audit::Record, config::Endpoint, listen::Health, tunnel::OpenTunnel};

/// A running Tollgate. Dropping it lets it run on; [`Running::wait`] sees it to its end.
pub struct Running {
    pub(super) core: Arc<Core>,
    pub(super) workers: Vec<JoinHandle<()>>,
    pub(super) ops_thread: JoinHandle<()>,
    pub(super) connect_thread: JoinHandle<()>,
    pub(super) agents: Option<Endpoint>,
    pub(super) egress: Option<Endpoint>,
    pub(super) ops: Option<Endpoint>,
    pub(super) web: Option<Endpoint>,
    pub(super) sockets: Vec<PathBuf>,
}

/// What can be asked of a running Tollgate from any thread.
#[derive(Clone)]
pub struct Handle(Arc<Core>);

impl Running {
    /// Where agents connect, with the real port; `None` if that listener is off.
    pub fn agents(&self) -> Option<&Endpoint> {
        self.agents.as_ref()
    }

    /// Where the forward proxy listens, with the real port; `None` if it is off.
    pub fn egress(&self) -> Option<&Endpoint> {
        self.egress.as_ref()
    }

    /// Where the ops listener stands; `None` if it is off.
    pub fn ops(&self) -> Option<&Endpoint> {
        self.ops.as_ref()
    }

    /// Where the pages are served, with the real port; `None` if they are off.
    pub fn web(&self) -> Option<&Endpoint> {
        self.web.as_ref()
    }

    /// A handle for other threads.
    pub fn handle(&self) -> Handle {
        Handle(self.core.clone())
    }

    /// Waits, blocking, until a drain has ended and every record is on disk.
    ///
    /// # Errors
    ///
    /// Records that waited could not be written.
    pub fn wait(self) -> Result<(), Error> {
        for worker in self.workers {
            // A worker that panicked has said so on standard error; the others are still to be waited for.
            drop(worker.join());
        }
        self.core.stop.cancel();
        drop(self.ops_thread.join());
        drop(self.connect_thread.join());
        for socket in self.sockets {
            // The next start replaces it as well.
            drop(std::fs::remove_file(socket));
        }
        let core = self.core;
        core.record(Record::lifecycle(core.clock.now(), "stop"));
        let runtime = worker::runtime().map_err(Error::Thread)?;
        runtime.block_on(async {
            core.look_at_age().await;
            core.store.close().await;
        });
        runtime
            .block_on(core.journal.close())
            .map_err(Error::Unrecorded)
    }
}

impl Handle {
    /// Accepts nothing new and finishes what runs.
    pub fn drain(&self) {
        self.0.begin_drain();
    }

    /// Does not wait any longer for what runs.
    pub fn cut(&self) {
        self.0.begin_drain();
        self.0.cut.cancel();
    }

    /// Reads the policy again. Blocks on the disk.
    pub fn reload(&self) -> Outcome {
        self.0.reloader.reload()
    }

    /// How it is.
    pub fn status(&self) -> Status {
        self.0.status()
    }

    /// The open tunnels of the forward proxy, the oldest first.
    pub fn tunnels(&self) -> Vec<OpenTunnel> {
        self.0.tunnels.tunnels()
    }

    /// The metrics as OpenMetrics text.
    pub fn metrics(&self) -> String {
        self.0.metrics()
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Running")
            .field("agents", &self.agents)
            .field("ops", &self.ops)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Handle").finish_non_exhaustive()
    }
}
