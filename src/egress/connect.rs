//! Connections for the forward proxy: to a judged address, or through the operator's parent proxy to it.

mod parent;

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;

use self::parent::Hop;
use super::{Destination, Egress, Error, Failed, Io, dial};
use crate::{address::JudgedAddr, deadline::Deadline, policy::ProxyPermit};

/// How long connecting may take; the deadline may come sooner. A parent proxy has as long again for its answer.
const LIMIT: Duration = Duration::from_secs(5);

/// A connection that nothing was written on yet.
pub struct Connected {
    /// The stream; plain, whatever the scheme of the target.
    pub io: Box<dyn Io>,
    /// What has come on it behind the head of a parent proxy's answer: it belongs to the tunnel.
    pub early: Bytes,
    /// Where it leads.
    pub destination: Destination,
    /// Where exactly: the judged address that was dialled, or that the parent proxy was asked for; where the parent
    /// resolves names, the parent's own.
    pub address: JudgedAddr,
}

/// Where a permit leads, once that is judged.
pub(super) struct Route {
    pub(super) destination: Destination,
    /// In their order; empty where the parent proxy resolves the name.
    pub(super) addresses: Vec<JudgedAddr>,
}

/// A connection as it was opened.
pub(super) struct Opened {
    pub(super) io: Box<dyn Io>,
    /// As [`Connected::early`].
    pub(super) early: Bytes,
    /// As [`Connected::address`].
    pub(super) address: JudgedAddr,
}

impl Egress {
    /// Opens a connection for a tunnel. Nothing is written to its destination.
    ///
    /// # Errors
    ///
    /// [`Failed`], of which nothing was ever sent.
    pub async fn connect(
        &self,
        permit: &ProxyPermit,
        deadline: Deadline,
    ) -> Result<Connected, Failed> {
        let route = self.route(permit, deadline).await;
        let route = route.map_err(|error| Failed::unsent(error, None))?;
        match self.open_route(permit, &route, deadline).await {
            Ok(opened) => Ok(Connected {
                io: opened.io,
                early: opened.early,
                destination: route.destination,
                address: opened.address,
            }),
            Err(error) => Err(Failed::unsent(error, Some(route.destination))),
        }
    }

    /// Judges where the permit leads.
    pub(super) async fn route(
        &self,
        permit: &ProxyPermit,
        deadline: Deadline,
    ) -> Result<Route, Error> {
        let (target, rules, leg) = (permit.target(), permit.addresses(), permit.leg());
        let host: Arc<str> = target.host().to_text();
        let resolves = permit.parent().is_some_and(|parent| parent.resolves);
        let judged = if resolves {
            let judged = rules.before_resolving(&leg, target).map_err(Error::from);
            self.count_blocked(&judged);
            judged?
        } else {
            Some(self.locate(rules, &leg, target, &host, deadline).await?)
        };
        let Some(judged) = judged else {
            return Ok(Route {
                destination: Destination {
                    host,
                    port: target.port(),
                    addresses: Vec::new(),
                    pinned: false,
                    grant: None,
                },
                addresses: Vec::new(),
            });
        };
        Ok(Route {
            destination: Destination::new(host, target.port(), &judged),
            addresses: judged.addresses,
        })
    }

    /// Opens a connection to where a route leads.
    pub(super) async fn open_route(
        &self,
        permit: &ProxyPermit,
        route: &Route,
        deadline: Deadline,
    ) -> Result<Opened, Error> {
        if let Some(parent) = permit.parent() {
            let host = &route.destination.host;
            let hop = Hop::new(self, permit, parent, host, deadline);
            return hop.open(&route.addresses).await;
        }
        let host = &route.destination.host;
        let until = deadline.phase(LIMIT);
        let (io, address) = dial::connect(&*self.0.dialer, &route.addresses, until)
            .await
            .map_err(|error| Error::unconnected(host, error, LIMIT, deadline))?;
        Ok(Opened {
            io,
            early: Bytes::new(),
            address,
        })
    }
}

impl fmt::Debug for Connected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Connected")
            .field("destination", &self.destination)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
