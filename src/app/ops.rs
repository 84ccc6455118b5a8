//! The thread beside the workers: ops listener, control socket, and the watch over the policy folder.

use std::{
    io,
    os::unix::net::UnixListener as StdListener,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    net::UnixListener,
    time::{MissedTickBehavior, interval, sleep},
};

use super::{Error, control, core::Core, desk::Desk, vault, worker};
use crate::listen::{Bound, Limits, Lobby, Ops, Origins, Recorder, accept};

/// How long an ops request may still take once the workers have ended.
const GRACE: Duration = Duration::from_secs(1);
/// Connections of the ops listener.
const CONNECTIONS: usize = 64;

/// Starts the thread.
pub(super) fn start(
    shared: worker::Shared,
    control: StdListener,
    ops: Option<Bound>,
) -> Result<JoinHandle<()>, Error> {
    let runtime = worker::runtime().map_err(Error::Thread)?;
    let run = move || {
        if let Err(error) = runtime.block_on(serve(shared, control, ops)) {
            tracing::error!(%error, "control and ops have ended");
        }
    };
    thread::Builder::new()
        .name("ops".to_owned())
        .spawn(run)
        .map_err(Error::Thread)
}

/// Looks after the tunnels of all workers.
async fn look_after(core: Arc<Core>) {
    let mut ticks = interval(worker::TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        core.tunnels.look_after();
    }
}

async fn serve(shared: worker::Shared, control: StdListener, ops: Option<Bound>) -> io::Result<()> {
    let core = shared.core.clone();
    let control = UnixListener::from_std(control)?;
    tokio::spawn(control::serve(control, Arc::new(Desk::new(shared))));
    tokio::spawn(core.reloader.clone().watch());
    tokio::spawn(look_after(core.clone()));
    tokio::spawn(vault::watch_age(core.clone()));
    tokio::spawn(vault::watch_keys(core.clone()));
    let Some(ops) = ops else {
        core.stop.cancelled().await;
        return Ok(());
    };
    let limits = Limits {
        connections: CONNECTIONS,
        ..Limits::default()
    };
    let lobby = Lobby::new(limits, None, core.metrics.clone(), core.stop.clone());
    let recorder = Recorder::new(
        core.journal.clone(),
        core.clock.clone(),
        core.metrics.clone(),
    );
    let handler = Ops::new(core.clone(), Origins::default(), recorder);
    for socket in ops.sockets {
        tokio::select! {
            served = accept(socket, lobby.clone(), handler.clone()) => served?,
            () = async { core.stop.cancelled().await; sleep(GRACE).await } => {}
        }
    }
    Ok(())
}
