//! Seats: how many tunnels a caller may have.

use std::sync::Arc;

use super::{Party, Table, Tunnel};
use crate::{
    policy::TunnelLimits,
    refusal::{Code, Refusal},
    tunnel::Shared,
};

/// A place for a tunnel, or for a plain request; given back when it is dropped, and what it was for is no longer listed then.
pub(in crate::tunnel) struct Seat {
    shared: Arc<Shared>,
    party: Party,
    kind: Kind,
    tunnel: Option<Arc<Tunnel>>,
}

/// What a seat is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tunnel) enum Kind {
    /// A tunnel, or what may become one.
    Tunnel,
    /// A plain request: it counts for its caller while it lasts, however fast they come.
    Request,
}

impl Seat {
    /// Takes a seat, while its caller may have one.
    pub(in crate::tunnel) fn take(
        shared: &Arc<Shared>,
        party: Party,
        kind: Kind,
        limits: &TunnelLimits,
    ) -> Result<Self, Refusal> {
        shared.open.lock().seat(&party, kind, limits)?;
        Ok(Self {
            shared: shared.clone(),
            party,
            kind,
            tunnel: None,
        })
    }

    /// Lists the tunnel.
    pub(in crate::tunnel) fn open(&mut self, tunnel: Tunnel) -> Arc<Tunnel> {
        let tunnel = Arc::new(tunnel);
        self.shared.open.add(&tunnel);
        if self.kind == Kind::Tunnel {
            self.shared.metrics.tunnel_open.inc();
            self.shared.metrics.tunnel_opened.inc();
        }
        self.tunnel = Some(tunnel.clone());
        tunnel
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut table = self.shared.open.lock();
        if let Some(tunnel) = &self.tunnel {
            table.tunnels.remove(&tunnel.id);
        }
        table.leave(&self.party, self.kind);
        drop(table);
        if self.kind == Kind::Tunnel && self.tunnel.is_some() {
            self.shared.metrics.tunnel_open.dec();
        }
    }
}

impl Table {
    fn seat(&mut self, party: &Party, kind: Kind, limits: &TunnelLimits) -> Result<(), Refusal> {
        if kind == Kind::Tunnel && self.seats >= limits.all_callers {
            let public = format!("{} tunnels are open", self.seats);
            return Err(Refusal::new(Code::Overloaded, public));
        }
        let open = self.callers.get(party).copied().unwrap_or_default();
        if open >= limits.per_caller {
            let public = format!("this caller has {open} tunnels and requests open");
            return Err(Refusal::new(Code::TunnelLimit, public));
        }
        if kind == Kind::Tunnel {
            self.pace.check(party, limits)?;
            self.seats += 1;
        }
        *self.callers.entry(party.clone()).or_default() += 1;
        Ok(())
    }

    fn leave(&mut self, party: &Party, kind: Kind) {
        if kind == Kind::Tunnel {
            self.seats -= 1;
        }
        if let Some(open) = self.callers.get_mut(party) {
            *open -= 1;
            if *open == 0 {
                self.callers.remove(party);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::subject::Owner;

    fn party(user: &str) -> Party {
        Party {
            owner: Owner {
                tenant: "default".into(),
                user: user.into(),
            },
            agent: "ci".into(),
        }
    }

    #[test]
    fn callers_are_bounded_each_and_together() {
        let limits = TunnelLimits {
            per_caller: 2,
            all_callers: 4,
            ..TunnelLimits::default()
        };
        let mut table = Table::default();
        let mut taken = |user, kind| {
            let refused = table.seat(&party(user), kind, &limits).err();
            refused.map(|refusal| refusal.code)
        };
        let mut seat = |user| taken(user, Kind::Tunnel);
        assert_eq!(seat("a"), None);
        assert_eq!(seat("a"), None);
        assert_eq!(seat("a"), Some(Code::TunnelLimit));
        assert_eq!(seat("b"), None);
        assert_eq!(seat("c"), None);
        assert_eq!(seat("d"), Some(Code::Overloaded));
        table.leave(&party("a"), Kind::Tunnel);
        table.leave(&party("a"), Kind::Tunnel);
        assert!(!table.callers.contains_key(&party("a")));
        assert!(table.seat(&party("d"), Kind::Tunnel, &limits).is_ok());
    }

    #[test]
    fn requests_count_for_their_caller_alone() {
        let limits = TunnelLimits {
            per_caller: 2,
            all_callers: 1,
            burst: NonZeroU32::MIN,
            ..TunnelLimits::default()
        };
        let mut table = Table::default();
        let mut seat = |user, kind| {
            let refused = table.seat(&party(user), kind, &limits).err();
            refused.map(|refusal| refusal.code)
        };
        assert_eq!(seat("a", Kind::Tunnel), None);
        assert_eq!(seat("a", Kind::Request), None);
        assert_eq!(seat("a", Kind::Request), Some(Code::TunnelLimit));
        assert_eq!(seat("b", Kind::Request), None, "whatever all have");
        assert_eq!(seat("b", Kind::Request), None, "however fast");
        table.leave(&party("a"), Kind::Request);
        assert!(table.seat(&party("a"), Kind::Request, &limits).is_ok());
        assert_eq!(table.seats, 1);
    }
}
