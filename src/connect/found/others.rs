//! Who else is pinned in the tenant, against which metadata is judged when it is taken up, when a flow begins, and when its
//! code comes back.

use super::discovered;
use crate::{
    audit::{Kind, OutcomeKind},
    connect::{
        Error, Inner, inner,
        provider::{discovery::Discovered, mix_up},
    },
    policy::Permit,
};

/// Judges by all that is known: files, presets and pins. What is refused is recorded.
///
/// # Errors
///
/// [`Error::MixUp`], or the database does not work.
pub(in crate::connect) async fn check(
    inner: &Inner,
    permit: &Permit,
    found: &Discovered,
) -> Result<(), Error> {
    let mut pinned = Vec::new();
    for server in permit.oauth_servers() {
        let its = discovered::pinned_of(inner, server).await?;
        pinned.extend(its.map(|its| (&*server.name, its)));
    }
    let by_policy = mix_up::by_policy(permit, found);
    match by_policy.or_else(|| mix_up::by_pins(permit, found, &pinned)) {
        Some(crossing) => Err(refused(inner, permit, crossing.error(permit))),
        None => Ok(()),
    }
}

/// Records a mix-up; any other error passes.
pub(in crate::connect) fn refused(inner: &Inner, permit: &Permit, error: Error) -> Error {
    if let Error::MixUp {
        server,
        issuer,
        endpoint,
        origin,
        by,
    } = &error
    {
        // Who is there may have been the wrong one, who came first: the operator finds out here.
        tracing::warn!(%server, issuer, endpoint, origin, by, "metadata names an endpoint of another authorization server");
        let ended = (OutcomeKind::Refused, Some(error.code()));
        inner.note(Kind::Connect, "mix_up", &inner::key(permit), ended);
    }
    error
}
