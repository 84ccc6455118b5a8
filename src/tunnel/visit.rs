//! One head: who asks, and whether he may.

use std::sync::Arc;

use http::HeaderMap;

use super::{Credential, CredentialError, Head, Shared, answer::Refused, record::Entry};
use crate::{
    identity::{self, Caller},
    policy::{self, ProxyPermit, Snapshot, decide_egress},
    refusal::{Code, Refusal},
};

/// A request of a known caller that policy lets through.
pub(super) struct Visit {
    pub(super) caller: Caller,
    pub(super) permit: ProxyPermit,
    pub(super) policy: Arc<Snapshot>,
    pub(super) entry: Entry,
}

impl Visit {
    /// Judges a head; a refusal is recorded when this returns.
    pub(super) fn enter(shared: &Arc<Shared>, head: &Head) -> Result<Self, Refused> {
        let policy = shared.policy.load_full();
        let mut entry = Entry::begin(shared, head, policy.generation);
        match judge(shared, &policy, head, &mut entry) {
            Ok((caller, permit)) => Ok(Self {
                caller,
                permit,
                policy,
                entry,
            }),
            Err(refused) => {
                entry.refuse(&refused);
                Err(refused)
            }
        }
    }
}

/// What a head alone decides, in order.
fn judge(
    shared: &Shared,
    policy: &Snapshot,
    head: &Head,
    entry: &mut Entry,
) -> Result<(Caller, ProxyPermit), Refused> {
    let caller = identify(shared, policy, head)?;
    entry.by(caller.subject());
    check_private(&head.headers)?;
    let shown = head.path.as_deref().map(|path| policy::Head {
        method: head.method.as_str(),
        path,
    });
    let permit = decide_egress(policy, &caller, &head.target, shown, shared.clock.now())
        .map_err(Refused::by_rule)?;
    head.check_host().map_err(Refusal::from)?;
    Ok((caller, permit))
}

fn identify(shared: &Shared, policy: &Snapshot, head: &Head) -> Result<Caller, Refusal> {
    let credential = match Credential::read(head.authorization.as_ref()) {
        // Whether that is enough is for `identity` to say.
        Err(CredentialError::Missing) => None,
        read => Some(read?),
    };
    let key = credential.as_ref().map(|it| it.key.expose());
    let user = credential.as_ref().and_then(|it| it.user.as_deref());
    let identity = &shared.identity;
    identity
        .identify_proxied(key, user, &head.headers, policy)
        .map_err(|error| match error {
            identity::Error::Missing => CredentialError::Missing.into(),
            identity::Error::NotAKey | identity::Error::Unknown => {
                let public = "the proxy credential is no agent key that is known here";
                Refusal::new(Code::ProxyCredentialInvalid, public)
            }
            identity::Error::NotJudged => {
                let public = "the proxy knows one local user and judges no credential; leave it out of the proxy URL";
                Refusal::new(Code::EvidenceInvalid, public)
            }
            error => error.into(),
        })
}

/// A private conversation gets nothing through the proxy.
fn check_private(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut said = headers.get_all("tollgate-private").iter();
    if said.all(|value| value.as_bytes() == b"0") {
        return Ok(());
    }
    let public = "the conversation is declared private, and nothing of it goes through the proxy";
    Err(Refusal::new(Code::PrivateConversation, public))
}
