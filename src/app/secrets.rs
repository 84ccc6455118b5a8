//! Secrets that the operator keeps in the vault for everybody of a tenant, at the control socket.

use std::sync::Arc;

use super::{
    control::{Answer, SecretOf},
    core::Core,
    pins,
};
use crate::{
    connect::{Connections, SharedSecret},
    policy::{Server, Snapshot},
    refusal::{Code, Refusal},
};

/// What is wrong where there is none in the vault, in [`SharedSecret::wrong`].
const NONE: [&str; 2] = ["missing", "file_refused"];

/// All of them.
pub(super) async fn list(core: &Core) -> Answer {
    let policy = &core.reloader.current_full().policy;
    match core.connections.shared(policy).await {
        Ok(secrets) => Answer::Secrets(secrets),
        Err(error) => Answer::Failed(vec![Refusal::from(error).text()]),
    }
}

/// Those that cannot be used; none are told of while the database does not work, which is told of elsewhere.
pub(super) async fn wrong(core: &Core) -> Vec<SharedSecret> {
    let policy = &core.reloader.current_full().policy;
    let all = core.connections.shared(policy).await.unwrap_or_default();
    let wrong = all.into_iter().filter(|secret| secret.wrong.is_some());
    wrong.collect()
}

/// Whether one would be kept for a server.
pub(super) fn fits(core: &Core, of: &SecretOf) -> Answer {
    let policy = &core.reloader.current_full().policy;
    let fitting = meant(policy, of)
        .and_then(|(server, tenant)| Ok(Connections::takes_shared(server, &tenant)?));
    fitting.map_or_else(|refusal| failed(&refusal), |()| Answer::SecretFits)
}

/// Keeps one for a server.
pub(super) async fn set(core: &Core, of: SecretOf, secret: &[u8]) -> Answer {
    let kept = keep(core, of, secret).await;
    kept.map_or_else(|refusal| failed(&refusal), Answer::SecretChanged)
}

/// The remedies of some codes are for those who call.
fn failed(refusal: &Refusal) -> Answer {
    let is_of_callers = [Code::ServerUnknown, Code::ConnectUnusable].contains(&refusal.code);
    Answer::Failed(vec![match is_of_callers {
        true => pins::told(refusal),
        false => refusal.text(),
    }])
}

/// Takes one away.
pub(super) async fn remove(core: &Core, of: SecretOf) -> Answer {
    match take(core, of).await {
        Ok(of) => Answer::SecretChanged(of),
        Err(why) => Answer::Failed(vec![why]),
    }
}

async fn keep(core: &Core, of: SecretOf, secret: &[u8]) -> Result<SecretOf, Refusal> {
    let policy = &core.reloader.current_full().policy;
    let (server, tenant) = meant(policy, &of)?;
    core.connections.set_shared(server, &tenant, secret).await?;
    Ok(SecretOf {
        tenant: Some(tenant.to_string()),
        ..of
    })
}

/// The server, and the tenant that is named or the only one.
fn meant<'a>(policy: &'a Snapshot, of: &SecretOf) -> Result<(&'a Server, Arc<str>), Refusal> {
    let server = policy.servers.get(&*of.server).ok_or_else(|| {
        let public = format!(
            "no server `{}` in the policy that holds; name one of its servers",
            of.server.escape_debug()
        );
        Refusal::new(Code::ServerUnknown, public)
    })?;
    let tenant = match &of.tenant {
        Some(tenant) => Arc::from(tenant.as_str()),
        None => only_tenant(server)?,
    };
    Ok((server, tenant))
}

fn only_tenant(server: &Server) -> Result<Arc<str>, Refusal> {
    match &server.tenants[..] {
        [tenant] => Ok(tenant.clone()),
        tenants => {
            let (name, tenants) = (&server.name, tenants.join(", "));
            let public = format!(
                "server `{name}` is for several tenants ({tenants}); name one with --tenant"
            );
            Err(Refusal::new(Code::ConnectUnusable, public))
        }
    }
}

/// One may be left of a server that no file names any more.
async fn take(core: &Core, of: SecretOf) -> Result<SecretOf, String> {
    let policy = &core.reloader.current_full().policy;
    let all = core.connections.shared(policy).await;
    let all = all.map_err(|error| Refusal::from(error).text())?;
    let is_meant = |secret: &&SharedSecret| {
        secret.server == of.server
            && !secret
                .wrong
                .as_deref()
                .is_some_and(|wrong| NONE.contains(&wrong))
            && of
                .tenant
                .as_ref()
                .is_none_or(|tenant| *tenant == secret.tenant)
    };
    let meant: Vec<_> = all.iter().filter(is_meant).collect();
    let [secret] = meant[..] else {
        let server = of.server.escape_debug();
        return Err(match meant.is_empty() {
            true => format!(
                "no secret is kept for server `{server}`; `tollgate secret list` tells which are"
            ),
            false => format!(
                "secrets of several tenants are kept for server `{server}`; name one with --tenant"
            ),
        });
    };
    let (server, tenant) = (Arc::from(&*secret.server), Arc::from(&*secret.tenant));
    let removed = core.connections.remove_shared(&server, &tenant).await;
    removed.map_err(|error| Refusal::from(error).text())?;
    Ok(SecretOf {
        server: secret.server.clone(),
        tenant: Some(secret.tenant.clone()),
    })
}
