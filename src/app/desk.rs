//! What the control socket can do.

use std::sync::Arc;

use super::{
    connections,
    control::{Answer, Control, Request},
    core::Core,
    keys, pins,
    reload::Outcome,
    secrets,
    status::Status,
    web, worker,
};

/// Carries out what the command line asks.
pub(super) struct Desk {
    shared: worker::Shared,
}

impl Desk {
    pub(super) fn new(shared: worker::Shared) -> Self {
        Self { shared }
    }

    fn core(&self) -> &Arc<Core> {
        &self.shared.core
    }

    async fn reload(&self) -> Answer {
        let core = self.core().clone();
        let outcome = tokio::task::spawn_blocking(move || core.reloader.reload()).await;
        let core = self.core();
        let answer = match outcome {
            Ok(Outcome::Rejected { faults }) => {
                Answer::Failed(faults.iter().map(ToString::to_string).collect())
            }
            Ok(Outcome::Changed { .. } | Outcome::Unchanged { .. }) => Answer::Reloaded {
                generation: core.reloader.current_full().policy.generation,
                restart: core.pending().restart,
            },
            Err(error) => Answer::Failed(vec![format!("the reload broke off: {error}")]),
        };
        core.record_admin("reload", matches!(answer, Answer::Reloaded { .. }));
        answer
    }
}

impl Control for Desk {
    async fn carry_out(self: Arc<Self>, request: Request) -> Answer {
        let core = self.core();
        match request {
            Request::Status => Answer::Status(Box::new(Status {
                waiting: connections::waiting(core).await,
                secrets: secrets::wrong(core).await,
                ..core.status()
            })),
            Request::Reload => self.reload().await,
            Request::Tunnels => Answer::Tunnels(core.tunnels.tunnels()),
            Request::Connections => connections::list(core).await,
            Request::ServerRemove { server } => connections::remove(core, &server).await,
            Request::Secrets => secrets::list(core).await,
            Request::SecretFits { of } => secrets::fits(core, &of),
            Request::SecretSet { of, secret } => secrets::set(core, of, secret.0.as_bytes()).await,
            Request::SecretRemove { of } => secrets::remove(core, of).await,
            Request::Keys { change } => match keys::in_process(core, change).await {
                Ok(report) => Answer::Keys(report),
                Err(why) => Answer::Failed(vec![why]),
            },
            Request::VaultAcceptRestore => {
                let accepted = core.accept_restore().await;
                core.record_admin("vault_accept_restore", accepted.is_ok());
                match accepted {
                    Ok(number) => Answer::RestoreAccepted(number),
                    Err(why) => Answer::Failed(vec![why]),
                }
            }
            Request::Drain => {
                core.record_admin("drain", true);
                core.begin_drain();
                Answer::Draining
            }
            Request::Login { tenant, user } => {
                web::login(core, tenant.as_deref(), user.as_deref()).await
            }
            Request::Pins { server } => pins::show(core, &server).await,
            Request::PinRead { server } => pins::read(&self.shared, &server).await,
            Request::PinAccept { server, accept } => pins::accept(core, &server, accept).await,
        }
    }
}
