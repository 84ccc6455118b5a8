//! Seats: how many tunnels a caller may have, and how fast new ones.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{Table, Tunnel};
use crate::{
    policy::TunnelLimits,
    refusal::{Code, Refusal},
    subject::{Owner, Subject},
    tunnel::Shared,
};

/// Who is bounded: an agent with one user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::tunnel) struct Party {
    owner: Owner,
    agent: Arc<str>,
}

impl Party {
    pub(in crate::tunnel) fn of(subject: &Subject) -> Self {
        Self {
            owner: subject.owner(),
            agent: subject.agent.clone(),
        }
    }
}

/// What a caller has.
#[derive(Debug)]
pub(super) struct Usage {
    open: usize,
    /// When the whole burst is there again.
    whole: Instant,
}

impl Usage {
    pub(super) fn matters(&self, now: Instant) -> bool {
        self.open > 0 || self.whole > now
    }

    /// Takes one of the burst, as a leaky bucket does that holds its level as a time.
    fn take(&mut self, limits: &TunnelLimits, now: Instant) -> Result<(), Refusal> {
        let gap = Duration::from_secs(1) / limits.per_second;
        let whole = self.whole.max(now) + gap;
        if whole > now + gap * limits.burst {
            let public = format!(
                "new tunnels come faster than {} a second, and {} at once",
                limits.per_second, limits.burst
            );
            return Err(Refusal::new(Code::TunnelRate, public));
        }
        self.whole = whole;
        self.open += 1;
        Ok(())
    }
}

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
        shared.open.lock().seat(&party, limits, Instant::now())?;
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
        table.seats -= 1;
        if let Some(usage) = table.callers.get_mut(party) {
            usage.open -= 1;
        }
        drop(table);
        if self.tunnel.is_some() {
            self.shared.metrics.tunnel_open.dec();
        }
    }
}

impl Table {
    fn seat(&mut self, party: &Party, limits: &TunnelLimits, now: Instant) -> Result<(), Refusal> {
        if self.seats >= limits.all_callers {
            let public = format!("{} tunnels are open", self.seats);
            return Err(Refusal::new(Code::Overloaded, public));
        }
        if !self.callers.contains_key(party) {
            let new = Usage {
                open: 0,
                whole: now,
            };
            self.callers.insert(party.clone(), new);
        }
        let usage = self.callers.get_mut(party);
        let usage = usage.expect("it was inserted where it was missing");
        if usage.open >= limits.per_caller {
            let public = format!("this caller has {} tunnels open", usage.open);
            return Err(Refusal::new(Code::TunnelLimit, public));
        }
        usage.take(limits, now)?;
        self.seats += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(user: &str) -> Party {
        Party {
            owner: Owner {
                tenant: "default".into(),
                user: user.into(),
            },
            agent: "ci".into(),
        }
    }

    fn limits() -> TunnelLimits {
        TunnelLimits {
            per_caller: 3,
            all_callers: 4,
            per_second: 10,
            burst: 2,
            ..TunnelLimits::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bursts_are_bounded_and_come_back() {
        let (mut table, begin) = (Table::default(), Instant::now());
        let mut seat = |after: u64| {
            let at = begin + Duration::from_millis(after);
            table.seat(&party("ann"), &limits(), at).err()
        };
        let code = |refusal: Option<Refusal>| refusal.map(|refusal| refusal.code);
        assert_eq!(code(seat(0)), None);
        assert_eq!(code(seat(0)), None);
        assert_eq!(code(seat(50)), Some(Code::TunnelRate));
        assert_eq!(code(seat(100)), None);
        assert_eq!(code(seat(900)), Some(Code::TunnelLimit));
    }

    #[tokio::test(start_paused = true)]
    async fn callers_are_bounded_together_and_forgotten() {
        let (mut table, begin) = (Table::default(), Instant::now());
        for user in ["a", "b", "c", "d"] {
            table.seat(&party(user), &limits(), begin).unwrap();
        }
        let full = table.seat(&party("e"), &limits(), begin).unwrap_err();
        assert_eq!(full.code, Code::Overloaded);
        let usage = &table.callers[&party("a")];
        assert!(usage.matters(begin + Duration::from_secs(9)), "it is open");
        let gone = Usage { open: 0, ..*usage };
        assert!(gone.matters(begin) && !gone.matters(begin + Duration::from_secs(1)));
    }
}
