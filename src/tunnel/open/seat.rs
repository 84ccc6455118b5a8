//! Seats: how many tunnels a caller may have.

use std::sync::Arc;

use super::{Party, Table, Tunnel};
use crate::{
    policy::TunnelLimits,
    refusal::{Code, Refusal},
    tunnel::Shared,
};

/// A place for a tunnel; given back when it is dropped, and the tunnel is no longer listed then.
pub(in crate::tunnel) struct Seat {
    shared: Arc<Shared>,
    /// `None` for a plain request, of which a connection has no more than one.
    party: Option<Party>,
    tunnel: Option<Arc<Tunnel>>,
}

impl Seat {
    /// Takes a seat, while its caller may have one.
    pub(in crate::tunnel) fn take(
        shared: &Arc<Shared>,
        party: Party,
        limits: &TunnelLimits,
    ) -> Result<Self, Refusal> {
        shared.open.lock().seat(&party, limits)?;
        Ok(Self {
            shared: shared.clone(),
            party: Some(party),
            tunnel: None,
        })
    }

    /// A place among the others for a plain request.
    pub(in crate::tunnel) fn unbounded(shared: &Arc<Shared>) -> Self {
        Self {
            shared: shared.clone(),
            party: None,
            tunnel: None,
        }
    }

    /// Lists the tunnel.
    pub(in crate::tunnel) fn open(&mut self, tunnel: Tunnel) -> Arc<Tunnel> {
        let tunnel = Arc::new(tunnel);
        self.shared.open.add(&tunnel);
        if self.party.is_some() {
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
        let Some(party) = &self.party else {
            return;
        };
        table.leave(party);
        drop(table);
        if self.tunnel.is_some() {
            self.shared.metrics.tunnel_open.dec();
        }
    }
}

impl Table {
    fn seat(&mut self, party: &Party, limits: &TunnelLimits) -> Result<(), Refusal> {
        if self.seats >= limits.all_callers {
            let public = format!("{} tunnels are open", self.seats);
            return Err(Refusal::new(Code::Overloaded, public));
        }
        let open = self.callers.get(party).copied().unwrap_or_default();
        if open >= limits.per_caller {
            let public = format!("this caller has {open} tunnels open");
            return Err(Refusal::new(Code::TunnelLimit, public));
        }
        self.pace.check(party, limits)?;
        self.callers.insert(party.clone(), open + 1);
        self.seats += 1;
        Ok(())
    }

    fn leave(&mut self, party: &Party) {
        self.seats -= 1;
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
        let mut seat = |user| {
            let refused = table.seat(&party(user), &limits).err();
            refused.map(|refusal| refusal.code)
        };
        assert_eq!(seat("a"), None);
        assert_eq!(seat("a"), None);
        assert_eq!(seat("a"), Some(Code::TunnelLimit));
        assert_eq!(seat("b"), None);
        assert_eq!(seat("c"), None);
        assert_eq!(seat("d"), Some(Code::Overloaded));
        table.leave(&party("a"));
        table.leave(&party("a"));
        assert!(!table.callers.contains_key(&party("a")));
        assert!(table.seat(&party("d"), &limits).is_ok());
    }
}
