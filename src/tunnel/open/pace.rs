//! How fast callers open tunnels.

use governor::{Quota, RateLimiter, clock::MonotonicClock, state::keyed::HashMapStateStore};

use super::Party;
use crate::{
    policy::TunnelLimits,
    refusal::{Code, Refusal},
};

/// A bucket for each caller; it lets a burst pass, and then so many a second.
pub(super) struct Pace {
    quota: Quota,
    buckets: RateLimiter<Party, HashMapStateStore<Party>, MonotonicClock>,
}

impl Default for Pace {
    fn default() -> Self {
        Self::new(quota(&TunnelLimits::default()))
    }
}

impl Pace {
    fn new(quota: Quota) -> Self {
        Self {
            quota,
            buckets: RateLimiter::hashmap(quota),
        }
    }

    /// Takes one of the caller's burst. Under other limits than the last time, every bucket is full again.
    pub(super) fn check(&mut self, party: &Party, limits: &TunnelLimits) -> Result<(), Refusal> {
        let quota = quota(limits);
        if quota != self.quota {
            *self = Self::new(quota);
        }
        self.buckets.check_key(party).map_err(|_| {
            let public = format!(
                "new tunnels come faster than {} a second, and {} at once",
                limits.per_second, limits.burst
            );
            Refusal::new(Code::TunnelRate, public)
        })
    }

    /// Forgets callers whose bucket is full again.
    pub(super) fn forget(&self) {
        self.buckets.retain_recent();
    }
}

fn quota(limits: &TunnelLimits) -> Quota {
    Quota::per_second(limits.per_second).allow_burst(limits.burst)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::subject::Owner;

    fn party(user: &str) -> Party {
        let tenant = "default".into();
        let user = user.into();
        Party {
            owner: Owner { tenant, user },
            agent: "ci".into(),
        }
    }

    fn limits(burst: u32) -> TunnelLimits {
        TunnelLimits {
            per_second: NonZeroU32::MIN,
            burst: NonZeroU32::new(burst).unwrap(),
            ..TunnelLimits::default()
        }
    }

    #[test]
    fn a_burst_passes_for_each_caller_and_no_more() {
        let mut pace = Pace::default();
        let mut check = |user, burst| {
            let refused = pace.check(&party(user), &limits(burst)).err();
            refused.map(|refusal| refusal.code)
        };
        assert_eq!(check("a", 2), None);
        assert_eq!(check("a", 2), None);
        assert_eq!(check("a", 2), Some(Code::TunnelRate));
        assert_eq!(check("b", 2), None);
        assert_eq!(check("a", 3), None, "under other limits");
    }

    #[test]
    fn callers_whose_bucket_is_not_full_are_kept() {
        let mut pace = Pace::default();
        pace.check(&party("a"), &limits(1)).unwrap();
        pace.forget();
        assert_eq!(pace.buckets.len(), 1);
        assert!(pace.check(&party("a"), &limits(1)).is_err());
    }
}
