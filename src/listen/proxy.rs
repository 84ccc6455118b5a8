//! The egress listener: the forward proxy has each connection from its first byte to its last.

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{Limits, Peer, Serve};
use crate::{
    refusal::Code,
    tunnel::{Proxy, Timeouts},
};

impl Serve for Proxy {
    async fn serve<S>(&self, stream: S, _: Peer, limits: Limits, drain: &CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let timeouts = Timeouts {
            head: limits.head,
            idle: limits.idle,
            stall: limits.stall,
        };
        Self::serve(self, stream, timeouts, drain).await;
    }

    fn fault(&self, code: Code, detail: &str) {
        Self::fault(self, code, detail);
    }
}
