//! From a target to the addresses that may be dialled.

use super::{Error, Resolve};
use crate::address::{Host, Judged, Leg, Rules, Target};

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
        Host::Name(name) => {
            let answer = resolver.resolve(name).await?;
            if let Some(left_out) = &answer.left_out {
                tracing::debug!(target: "tollgate::egress", %name, %left_out, "part of the answer is missing");
            }
            Ok(rules.judge(leg, target, &answer.addresses)?)
        }
    }
}
