//! The forward proxy of one worker, and the life of a connection to it.

use std::{fmt, sync::Arc, time::Duration};

use http::Method;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{
    Shared,
    answer::Asked,
    client::{Client, Ended},
    connect, record,
    request::{self, Then},
};
use crate::{
    egress::Egress,
    refusal::{Code, Refusal},
};

/// How long it may take until the target has accepted a connection: to resolve its name, and to connect.
pub(super) const OPENING: Duration = Duration::from_secs(15);

/// How long a client may take outside of a tunnel.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// A request head, from its first byte; the first one, from the connection. The ClientHello of a tunnel.
    pub head: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// A peer that does not take what is written to it.
    pub stall: Duration,
}

/// The forward proxy of one worker; cheap to clone.
#[derive(Clone)]
pub struct Proxy {
    pub(super) egress: Egress,
    pub(super) shared: Arc<Shared>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Proxy").finish_non_exhaustive()
    }
}

impl Proxy {
    /// A proxy that goes out by `egress`.
    pub fn new(egress: Egress, shared: Arc<Shared>) -> Self {
        Self { egress, shared }
    }

    /// Serves one connection to its end. A `drain` ends it where it waits for a request; an open tunnel is told of it by
    /// [`Shared::drain`].
    pub async fn serve<S>(&self, stream: S, timeouts: Timeouts, drain: &CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        // What follows a head is boxed: an idle connection, or an open tunnel, keeps no room for it.
        let mut client = Client::new(stream, timeouts);
        loop {
            let head = match client.head(drain).await {
                Ok(head) => head,
                Err(Ended::Quietly) => return,
                Err(Ended::Fault(code, detail)) => return self.fault(code, detail),
                Err(Ended::Head(error)) => {
                    let refusal = Refusal::from(error);
                    record::malformed(&self.shared, &refusal);
                    return client.refuse(&refusal.into(), &Asked::default()).await;
                }
            };
            if head.method == Method::CONNECT {
                let established = Box::pin(connect::establish(self, client, head)).await;
                if let Some((client, opened)) = established {
                    Box::pin(opened.carry(client)).await;
                }
                return;
            }
            match Box::pin(request::serve(self, &mut client, head)).await {
                Then::Next => {}
                Then::Close => return client.linger().await,
                Then::Cut => return,
                Then::Tunnel(tunnel) => return Box::pin(tunnel.carry(client)).await,
            }
        }
    }

    /// Takes down what went wrong outside any request.
    pub fn fault(&self, code: Code, detail: &str) {
        record::malformed(&self.shared, &Refusal::new(code, detail));
    }
}
