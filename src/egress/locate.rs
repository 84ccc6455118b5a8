//! From a target to the addresses that may be dialled.

use std::{net::IpAddr, sync::Arc};

use tokio::time::timeout_at;

use super::{Egress, Error, Resolve};
use crate::{
    address::{Host, Judged, Leg, Name, Rules, Target},
    deadline::Deadline,
};

/// Judges the name, resolves it, and judges the whole answer.
pub async fn locate(
    rules: &Rules,
    leg: &Leg,
    target: &Target,
    resolver: &dyn Resolve,
) -> Result<Judged, Error> {
    if let Some(judged) = rules.before_resolving(leg, target)? {
        return Ok(judged);
    }
    match target.host() {
        Host::Ip(address) => Ok(rules.judge(leg, target, &[*address])?),
        Host::Name(name) => Ok(rules.judge(leg, target, &resolve(resolver, name).await?)?),
    }
}

impl Egress {
    /// The same before the deadline, and what is blocked is counted; `host` is for the words of an error.
    pub(super) async fn locate(
        &self,
        rules: &Rules,
        leg: &Leg,
        target: &Target,
        host: &Arc<str>,
        deadline: Deadline,
    ) -> Result<Judged, Error> {
        let resolver = self.resolver();
        let judging = locate(rules, leg, target, &*resolver);
        let judged = timeout_at(deadline.instant(), judging)
            .await
            .unwrap_or_else(|_| Err(Error::CallTimeout { host: host.clone() }));
        self.count_blocked(&judged);
        judged
    }

    /// Counts a judgement that refuses.
    pub(super) fn count_blocked<T>(&self, judged: &Result<T, Error>) {
        if let Err(Error::Blocked(blocked)) = judged {
            self.0.metrics.blocked(blocked.code.as_str());
        }
    }
}

/// Every address of a name.
pub(super) async fn resolve(resolver: &dyn Resolve, name: &Name) -> Result<Arc<[IpAddr]>, Error> {
    let answer = resolver.resolve(name).await?;
    if let Some(left_out) = &answer.left_out {
        tracing::debug!(target: "tollgate::egress", %name, %left_out, "part of the answer is missing");
    }
    Ok(answer.addresses)
}
