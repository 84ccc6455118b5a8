//! Connections for the forward proxy: to a judged address.

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::timeout_at;

use super::{Destination, DialError, Egress, Error, Failed, Io, dial, locate};
use crate::{address::JudgedAddr, deadline::Deadline, policy::ProxyPermit};

/// How long connecting may take; the deadline may come sooner.
const LIMIT: Duration = Duration::from_secs(5);

/// A connection that nothing was written on yet.
pub struct Connected {
    /// The stream; plain, whatever the scheme of the target.
    pub io: Box<dyn Io>,
    /// Where it leads.
    pub destination: Destination,
    /// The judged address that was dialled.
    pub address: JudgedAddr,
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
        let unsent = |error, destination| Failed {
            error,
            not_sent: true,
            destination,
        };
        let target = permit.target();
        let host: Arc<str> = target.host().to_string().into();
        let (resolver, leg) = (self.resolver(), permit.leg());
        let judging = locate(permit.addresses(), &leg, target, &*resolver);
        let judged = timeout_at(deadline.instant(), judging)
            .await
            .unwrap_or_else(|_| Err(Error::CallTimeout { host: host.clone() }));
        let judged = judged.map_err(|error| unsent(error, None))?;
        let destination = Destination::new(host.clone(), target.port(), &judged);
        let until = deadline.phase(LIMIT);
        match dial::connect(&*self.0.dialer, &judged.addresses, until).await {
            Ok((io, address)) => Ok(Connected {
                io,
                destination,
                address,
            }),
            Err(DialError::TimedOut { .. }) => Err(unsent(
                Error::ConnectTimeout { host, limit: LIMIT },
                Some(Box::new(destination)),
            )),
            Err(source) => Err(unsent(
                Error::Connect { host, source },
                Some(Box::new(destination)),
            )),
        }
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
