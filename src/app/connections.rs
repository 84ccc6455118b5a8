//! Connections at the control socket: how all of them stand, and forgetting a server.

use super::{
    control::{Answer, Removed},
    core::Core,
};
use crate::{
    audit::{Kind, OutcomeKind, Phase, Record},
    deadline::{CEILING, Deadline},
    policy::{self, Purpose},
    refusal::{Code, Refusal},
};

/// How every connection stands.
pub(super) async fn list(core: &Core) -> Answer {
    let policy = &core.reloader.current_full().policy;
    match core.connections.all(policy).await {
        Ok(connections) => Answer::Connections(connections),
        Err(error) => Answer::Failed(vec![Refusal::from(error).text()]),
    }
}

/// Ends every connection to a server and forgets what was discovered of it. Its file and its pins are the operator's.
pub(super) async fn remove(core: &Core, server: &str) -> Answer {
    let removed = forget(core, server).await;
    record(
        core,
        server,
        removed.as_ref().err().map(|refusal| refusal.code),
    );
    match removed {
        Ok(removed) => Answer::Removed(removed),
        Err(refusal) => Answer::Failed(vec![refusal.text()]),
    }
}

async fn forget(core: &Core, server: &str) -> Result<Removed, Refusal> {
    let loaded = core.reloader.current_full();
    let permit = policy::decide_leg(&loaded.policy, Purpose::Catalogue, server).map_err(|_| {
        let public = format!(
            "no server `{server}` in the policy that holds, so that nothing may be sent to its provider; put its file back, \
             remove the server, then delete the file"
        );
        Refusal::new(Code::ServerUnknown, public)
    })?;
    let deadline = Deadline::after(CEILING);
    let (connections, revoked) = core.connections.forget(&permit, deadline).await?;
    Ok(Removed {
        server: server.to_owned(),
        connections,
        revoked,
    })
}

fn record(core: &Core, server: &str, code: Option<Code>) {
    let outcome = match code {
        None => OutcomeKind::Allowed,
        Some(_) => OutcomeKind::Failed,
    };
    let record = Record::new(core.clock.now(), Kind::Admin, Phase::Decision);
    let mut record = record.ended(outcome, code);
    record.server = Some(server.into());
    record.method = Some("server_remove".into());
    record.generation = Some(core.reloader.current_full().policy.generation);
    core.record(record);
}
