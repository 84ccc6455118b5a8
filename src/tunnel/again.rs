//! Open tunnels under a policy that has changed, or at a time that ends something.

use std::{net::IpAddr, time::SystemTime};

use super::{
    Shared,
    answer::Refused,
    open::{Standing, Tunnel},
    relay::{ClosedBy, End},
};
use crate::{
    address::Leg,
    policy::{Head, Snapshot, TunnelTls, decide_egress},
    refusal::{Code, Refusal},
};

impl Shared {
    /// Closes the tunnels that the policy in force would not open any more; once a second, it also finds keys and reports
    /// whose time is over.
    pub fn look_after(&self) {
        let (policy, now) = (self.policy.load_full(), self.clock.now());
        for tunnel in self.open.due(policy.generation) {
            match self.stands(&tunnel, &policy, now) {
                Ok(standing) => tunnel.judged(standing),
                Err(end) => tunnel.cut(end),
            }
        }
        self.open.forget_callers();
    }

    fn stands(&self, tunnel: &Tunnel, policy: &Snapshot, now: SystemTime) -> Result<Standing, End> {
        let caller = self
            .identity
            .again(&tunnel.caller, policy)
            .map_err(|error| End::refused(ClosedBy::Credential, error.into()))?;
        let cut = |refused: Refused| End::refused(ClosedBy::Policy, refused);
        let shown = tunnel.shown.as_ref().map(|(method, path)| Head {
            method: method.as_str(),
            path,
        });
        let permit = decide_egress(policy, &caller, &tunnel.target, shown, now)
            .map_err(|denied| cut(Refused::by_rule(denied)))?;
        if tunnel.tls == TunnelTls::Opaque && permit.tls() == TunnelTls::Pass {
            let public = "the tunnel's bytes were not checked, and are to be TLS now";
            return Err(cut(Refusal::new(Code::NotTls, public).into()));
        }
        if tunnel.parent.as_ref() != permit.parent() {
            let public = "the tunnel goes by another parent proxy than others do now";
            return Err(cut(Refusal::new(Code::ParentChanged, public).into()));
        }
        let rules = permit.addresses();
        // Where a parent proxy resolves the name, no address is known: the name alone is judged.
        let of_address = |address: &IpAddr| rules.judge(&Leg::Proxy, &tunnel.target, &[*address]);
        let judged = rules
            .before_resolving(&Leg::Proxy, &tunnel.target)
            .and_then(|_| tunnel.address.get().map(of_address).transpose());
        judged.map_err(|blocked| cut(Refusal::new(blocked.code, blocked.reason).into()))?;
        Ok(Standing::new(&caller, &permit))
    }
}
