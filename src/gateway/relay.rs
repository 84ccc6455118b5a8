//! A server's stream on its way to the caller: event by event, and its answer only once it is recorded.

use std::{future::poll_fn, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use tokio::time::Instant;

use super::{
    Asked, Entry, Gateway, Proof, asked::Ticket, asker::Asker, courier::Courier, entry::Ending,
};
use crate::{
    deadline::Alarm,
    mcp::{Rejection, reply, sse},
    policy::Permit,
    refusal::Refusal,
    upstream::{Item, Message, Messages},
};

/// A comment is sent after so long without an event, so that nothing in between takes the stream for dead.
pub(super) const QUIET: Duration = Duration::from_secs(15);

/// Everything that a relayed stream holds on to until it ends.
pub(super) struct Relay {
    gateway: Gateway,
    permit: Permit,
    entry: Entry,
    messages: Box<Messages>,
    courier: Courier,
    ticket: Ticket,
    asker: Asker,
    quiet: Alarm,
    over: bool,
}

impl Relay {
    pub(super) fn new(
        gateway: &Gateway,
        asked: &Asked<'_>,
        permit: &Permit,
        entry: Entry,
        messages: Box<Messages>,
        ticket: Ticket,
    ) -> Self {
        Self {
            gateway: gateway.clone(),
            permit: permit.clone(),
            entry,
            messages,
            courier: Courier::new(gateway, permit, asked.line(&ticket)),
            ticket,
            asker: asked.asker.clone(),
            quiet: Alarm::default(),
            over: false,
        }
    }

    /// The caller's stream. Events that came together leave together.
    pub(super) fn events(self) -> impl Stream<Item = Bytes> + Send {
        stream::unfold(self, async |mut relay| {
            let bytes = relay.next().await?;
            Some((bytes, relay))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        self.quiet.set(Some(Instant::now() + QUIET));
        let waited = tokio::select! {
            biased;
            waited = self.messages.wait() => waited,
            () = self.ticket.stopped() => return self.stop().await,
            () = poll_fn(|context| self.quiet.poll(context)) => return Some(sse::KEEP_ALIVE),
        };
        match waited {
            Ok(_) => self.forward().await,
            Err(error) => {
                let refusal = error.refusal();
                self.ticket
                    .abandon_after(&self.gateway, &self.permit, refusal.code);
                Some(self.fail(&refusal, BytesMut::new()).await)
            }
        }
    }

    async fn forward(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        while let Some(item) = self.messages.take() {
            match item {
                Item::Answer(message) => return Some(self.finish(&message, out).await),
                item => self.courier.carry(item, &mut out),
            }
        }
        // A stream without an event in it would end the caller's; a comment says nothing and keeps it.
        Some(if out.is_empty() {
            sse::KEEP_ALIVE
        } else {
            self.messages.attach(out.freeze())
        })
    }

    async fn finish(&mut self, message: &Message, mut out: BytesMut) -> Bytes {
        let edits = match self
            .asker
            .edits(&self.gateway, &self.permit, message, self.asker.scope)
        {
            Ok(edits) => edits,
            Err(refusal) => return self.fail(&refusal, out).await,
        };
        self.over = true;
        match self.entry.close(Ending::with(message)).await {
            Ok(proof) => {
                let last = last(&message.pieces(&self.asker.id, &edits), out, proof);
                self.messages.attach(last)
            }
            Err(refusal) => {
                self.encode_refusal(&refusal, &mut out);
                out.freeze()
            }
        }
    }

    async fn fail(&mut self, refusal: &Refusal, mut out: BytesMut) -> Bytes {
        self.over = true;
        let closed = self.entry.close(Ending::without(refusal)).await;
        self.encode_refusal(closed.as_ref().err().unwrap_or(refusal), &mut out);
        out.freeze()
    }

    /// The client stopped the request: it wants no answer (MCP 2025-11-25, cancellation).
    async fn stop(&mut self) -> Option<Bytes> {
        self.over = true;
        // Nothing is sent that would have to wait for the record.
        drop(self.entry.close(Ending::stopped()).await);
        None
    }

    fn encode_refusal(&self, refusal: &Refusal, out: &mut BytesMut) {
        let id = std::str::from_utf8(&self.asker.id).ok();
        let rejection = Rejection::from(refusal.clone()).with_id(id);
        let (_, body) = reply::refused(self.asker.era, self.asker.method, &rejection);
        sse::encode(out, &[&body]);
    }
}

/// The event that ends a stream.
pub(super) fn last(pieces: &[Bytes; 3], mut out: BytesMut, _proof: Proof) -> Bytes {
    let [head, id, tail] = pieces;
    sse::encode(&mut out, &[head, id, tail]);
    out.freeze()
}
