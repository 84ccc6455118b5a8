//! Secrets that the operator keeps in the vault for everybody of a tenant: set, taken away and listed on the machine.

use std::sync::Arc;

use super::{Entered, keep, of_file};
use crate::{
    audit::{Kind, OutcomeKind},
    connect::{Error, GrantKey, Inner, Key, Of, RecordsError, Row, kept, tell},
    policy::{Auth, Server, Snapshot},
    refusal::Code,
    subject::Owner,
};

/// The reason where there is none.
pub(in crate::connect) const MISSING: &str = "missing";

/// The reason where it lies beside the policy, and the server refused it.
pub(in crate::connect) const FILE_REFUSED: &str = "file_refused";

/// Secrets that are listed at most.
const MOST: usize = 10_000;

/// A secret that the operator keeps for everybody of a tenant, or has to.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SharedSecret {
    /// The server.
    pub server: String,
    /// The tenant.
    pub tenant: String,
    /// When it was set, in seconds since 1970; `None` where it is missing or cannot be read.
    pub since: Option<i64>,
    /// Why it cannot be used, in a word: `missing`, `refused`, `origin_changed`, `unreadable`, `unused` where no file
    /// asks for it any more, or `file_refused` where it is none of the vault: the server refused what its file names.
    pub wrong: Option<String>,
}

/// Keeps `secret` for everybody of a tenant.
///
/// # Errors
///
/// The server takes none, or is of other tenants; the secret cannot stand in a header; the database does not work.
pub(in crate::connect) async fn set(
    inner: &Inner,
    server: &Server,
    tenant: &Arc<str>,
    secret: &[u8],
) -> Result<(), Error> {
    let kept = put(inner, server, tenant, secret).await;
    let ended = match &kept {
        Ok(()) => (OutcomeKind::Allowed, None),
        Err(error) => (tell::outcome(error), Some(error.code())),
    };
    note(
        inner,
        Kind::Admin,
        "secret_set",
        (tenant, &server.name),
        ended,
    );
    kept
}

async fn put(
    inner: &Inner,
    server: &Server,
    tenant: &Arc<str>,
    secret: &[u8],
) -> Result<(), Error> {
    takes(server, tenant)?;
    keep(inner, server, &key(tenant, &server.name), secret).await
}

/// Whether the server takes a secret of the vault, and is of the tenant.
///
/// # Errors
///
/// It takes none, or is of other tenants.
pub(in crate::connect) fn takes(server: &Server, tenant: &Arc<str>) -> Result<(), Error> {
    let not_kept = |what: String| Error::NotKept {
        server: server.name.clone(),
        what,
    };
    if !server.auth.is_in_vault() {
        let what = "its file asks for none; set auth.mode = \"shared\" there, and no auth.secret";
        return Err(not_kept(what.to_owned()));
    }
    if !server.tenants.contains(tenant) {
        return Err(not_kept(format!(
            "it is not for tenant `{tenant}`, found {}",
            server.tenants.join(", ")
        )));
    }
    Ok(())
}

/// Takes the secret away; whether there was one.
pub(in crate::connect) async fn remove(
    inner: &Inner,
    server: &Arc<str>,
    tenant: &Arc<str>,
) -> Result<bool, Error> {
    let key = key(tenant, server);
    let taken = inner.records.take(&key).await.map_err(Error::from);
    inner.secrets.forget(&key);
    let ended = match &taken {
        Ok(Some(_)) => (OutcomeKind::Allowed, None),
        Ok(None) => (OutcomeKind::Failed, None),
        Err(error) => (OutcomeKind::Failed, Some(error.code())),
    };
    note(inner, Kind::Admin, "secret_remove", (tenant, server), ended);
    Ok(taken?.is_some())
}

/// Those that there are, and those that are missing, by server and tenant.
pub(in crate::connect) async fn all(
    inner: &Inner,
    policy: &Snapshot,
) -> Result<Vec<SharedSecret>, RecordsError> {
    let mut all = Vec::new();
    let mut after = None;
    while all.len() < MOST {
        let rows = inner.records.rows(&Of::Everyone, after).await?;
        let Some((_, last)) = rows.last() else { break };
        after = Some(last.record);
        let secrets = rows
            .iter()
            .filter_map(|(key, row)| found(inner, policy, key, row));
        all.extend(secrets);
    }
    let asked = policy
        .servers
        .values()
        .filter(|server| server.auth.is_in_vault());
    for server in asked {
        for tenant in &server.tenants {
            let is =
                |found: &SharedSecret| *found.server == *server.name && *found.tenant == **tenant;
            if !all.iter().any(is) {
                all.push(SharedSecret {
                    server: server.name.to_string(),
                    tenant: tenant.to_string(),
                    since: None,
                    wrong: Some(MISSING.to_owned()),
                });
            }
        }
    }
    all.extend(
        policy
            .servers
            .values()
            .filter_map(|server| of_file(inner, server)),
    );
    all.sort_by(|one, other| (&one.server, &one.tenant).cmp(&(&other.server, &other.tenant)));
    all.truncate(MOST);
    Ok(all)
}

/// Takes down what became of one.
pub(in crate::connect) fn note(
    inner: &Inner,
    kind: Kind,
    method: &'static str,
    (tenant, server): (&Arc<str>, &Arc<str>),
    ended: (OutcomeKind, Option<Code>),
) {
    let key = of_nobody(tenant, server);
    inner.note(kind, method, &key, ended);
}

/// As a record names it: nobody's in particular.
pub(in crate::connect) fn of_nobody(tenant: &Arc<str>, server: &Arc<str>) -> GrantKey {
    GrantKey {
        owner: Owner {
            tenant: tenant.clone(),
            user: "".into(),
        },
        server: server.clone(),
    }
}

/// One that lies beside the policy, where its server refuses it.
fn of_file(inner: &Inner, server: &Server) -> Option<SharedSecret> {
    let Auth::Shared(shared) = &server.auth else {
        return None;
    };
    let secret = shared.secret.as_ref()?;
    of_file::is_refused(inner, server, secret).then(|| SharedSecret {
        server: server.name.to_string(),
        tenant: server.tenants.join(", "),
        since: None,
        wrong: Some(FILE_REFUSED.to_owned()),
    })
}

fn found(inner: &Inner, policy: &Snapshot, key: &Key, row: &Row) -> Option<SharedSecret> {
    let Key::Shared { tenant, server } = key else {
        return None;
    };
    let entered: Option<Entered> = kept::open(inner, key, row);
    let asked = policy.servers.get(server);
    let asked = asked.filter(|asked| asked.auth.is_in_vault() && asked.tenants.contains(tenant));
    let wrong = match (&entered, asked) {
        (None, _) => Some("unreadable"),
        (_, None) => Some("unused"),
        (Some(entered), Some(server)) => entered.stands(Some(server)).err(),
    };
    Some(SharedSecret {
        server: server.to_string(),
        tenant: tenant.to_string(),
        since: entered.map(|entered| entered.at),
        wrong: wrong.map(str::to_owned),
    })
}

fn key(tenant: &Arc<str>, server: &Arc<str>) -> Key {
    Key::Shared {
        tenant: tenant.clone(),
        server: server.clone(),
    }
}
