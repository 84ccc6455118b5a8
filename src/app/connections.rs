//! Connections at the control socket: how all of them stand, and forgetting a server.

use super::{
    control::{Answer, Removed},
    core::Core,
    pins,
};
use crate::{
    audit::{Kind, OutcomeKind, Phase, Record},
    deadline::{CEILING, Deadline},
    policy::{self, Purpose, Snapshot},
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

/// How many wait for their users; none are told of while the database does not work, which is told of elsewhere.
pub(super) async fn waiting(core: &Core) -> usize {
    let policy = &core.reloader.current_full().policy;
    let all = core.connections.all(policy).await.unwrap_or_default();
    all.iter().filter(|found| found.waits_for_user()).count()
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
        // The remedy of that code is for those who call.
        Err(refusal) if refusal.code == Code::ServerUnknown => {
            Answer::Failed(vec![pins::told(&refusal)])
        }
        Err(refusal) => Answer::Failed(vec![refusal.text()]),
    }
}

async fn forget(core: &Core, server: &str) -> Result<Removed, Refusal> {
    let loaded = core.reloader.current_full();
    let permit = policy::decide_leg(&loaded.policy, Purpose::Catalogue, server)
        .map_err(|_| Refusal::new(Code::ServerUnknown, unknown(server, &loaded.policy)))?;
    let deadline = Deadline::after(CEILING);
    let forgotten = core.connections.forget(&permit, deadline).await?;
    Ok(Removed {
        server: server.to_owned(),
        connections: forgotten.connections,
        revoked: forgotten.revoked,
        shared: forgotten.shared,
    })
}

fn unknown(server: &str, policy: &Snapshot) -> String {
    let mut names: Vec<&str> = policy.servers.keys().map(|name| &**name).collect();
    names.sort_unstable();
    let expected = match names.as_slice() {
        [] => "and it has none".to_owned(),
        names => format!("expected one of `{}`", names.join("`, `")),
    };
    format!(
        "no server `{server}` in the policy that holds, {expected}; where its file is deleted already, put it back, remove the \
         server, then delete the file: nothing may be sent to the provider of a server that is not registered"
    )
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
