//! A server's stream on its way to the caller: event by event, and its answer only once it is recorded.

use std::{borrow::Cow, future::poll_fn, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use tokio::time::Instant;

use super::{
    courier::Courier,
    event_id::{self, Marks},
    resume::{self, Call, Claim, Lost, Offered},
};
use crate::{
    deadline::Alarm,
    gateway::{
        Asked, Entry, Gateway,
        reply::{
            Proof,
            results::{self, Turn},
        },
        request::{asked::Ticket, asker::Asker, entry::Ending},
    },
    mcp::{Rejection, reply, sse},
    policy::Permit,
    refusal::Refusal,
    upstream::{Edit, Event, Item, Message, Messages},
};

/// A comment is sent after so long without an event, so that nothing in between takes the stream for dead.
pub(in crate::gateway) const QUIET: Duration = Duration::from_secs(15);

/// Everything that a relayed stream holds on to until it ends.
pub(in crate::gateway) struct Relay {
    gateway: Gateway,
    permit: Permit,
    entry: Box<Entry>,
    messages: Box<Messages>,
    courier: Courier,
    ticket: Ticket,
    asker: Asker,
    marks: Marks,
    /// From the first event that the client can come back for.
    offered: Option<Offered>,
    /// Who takes the call over, on another stream.
    claim: Option<Claim>,
    quiet: Alarm,
    over: bool,
}

impl Relay {
    pub(in crate::gateway) fn new(
        gateway: &Gateway,
        asked: &Asked<'_>,
        permit: &Permit,
        entry: Box<Entry>,
        messages: Box<Messages>,
        ticket: Ticket,
    ) -> Box<Self> {
        let turn = Turn::of(&entry, asked.asker.turn_bytes);
        let call = Call {
            gateway: gateway.clone(),
            permit: permit.clone(),
            courier: Courier::new(gateway, permit, asked.line(&ticket, &entry), turn),
            entry,
            ticket,
            asker: asked.asker.clone(),
        };
        Self::of(call, messages, None)
    }

    /// The same for a call that has no stream, on which `messages` go on.
    pub(super) fn of(call: Call, messages: Box<Messages>, offered: Option<Offered>) -> Box<Self> {
        let Call {
            gateway,
            permit,
            entry,
            courier,
            ticket,
            asker,
        } = call;
        let stream = event_id::Stream::Call(ticket.id);
        Box::new(Self {
            marks: Marks::new(stream, ticket.session().map(AsRef::as_ref)),
            gateway,
            permit,
            entry,
            messages,
            courier,
            ticket,
            asker,
            offered,
            claim: None,
            quiet: Alarm::default(),
            over: false,
        })
    }

    /// The caller's stream. Events that came together leave together.
    pub(in crate::gateway) fn events(self: Box<Self>) -> impl Stream<Item = Bytes> + Send {
        stream::unfold(Streaming(Some(self)), async |mut streaming| {
            let bytes = streaming.0.as_mut()?.next().await?;
            Some((bytes, streaming))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        self.quiet.set(Some(Instant::now() + QUIET));
        let waited = tokio::select! {
            biased;
            claim = resume::claimed(&mut self.offered) => {
                self.claim = Some(claim);
                return None;
            }
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
        let mut out = self.messages.buffer();
        while let Some(event) = self.messages.take_event() {
            self.offer(&event);
            if let Some(Item::Answer(message)) = event.item {
                self.marks.begin(event.mark.as_deref(), &mut out);
                return Some(self.finish(&message, out).await);
            }
            self.marks.carry(event, &mut out, &self.courier);
        }
        // A stream without an event in it would end the caller's; a comment says nothing and keeps it.
        Some(if out.is_empty() {
            sse::KEEP_ALIVE
        } else {
            self.messages.attach(out.freeze())
        })
    }

    async fn finish(&mut self, message: &Message, mut out: BytesMut) -> Bytes {
        let (fitted, edits) = match self.fitted(message) {
            Ok(fitted) => fitted,
            Err(refusal) => return self.fail(&refusal, out).await,
        };
        self.over = true;
        match self.entry.close(Ending::with(message)).await {
            Ok(proof) => {
                self.remember();
                let last = last(&fitted.pieces(&self.asker.id, edits), out, proof);
                self.messages.attach(last)
            }
            Err(refusal) => {
                self.encode_refusal(&refusal, &mut out);
                out.freeze()
            }
        }
    }

    /// The answer as the caller may have it, and what changes in it.
    fn fitted<'m>(
        &mut self,
        message: &'m Message,
    ) -> Result<(Cow<'m, Message>, Vec<Edit>), Refusal> {
        let (gateway, permit, asker) = (&self.gateway, &self.permit, &self.asker);
        let (message, mut edits) = results::fit(gateway, permit, asker, &mut self.entry, message)?;
        let session = self.ticket.session().map(AsRef::as_ref);
        edits.extend(asker.edits(gateway, permit, &message, asker.scope, session)?);
        Ok((message, edits))
    }

    /// Lets the client come back for what follows an event that has an id.
    fn offer(&mut self, event: &Event) {
        let has_id = event.mark.as_ref().is_some_and(|mark| mark.id.is_some());
        if has_id && self.offered.is_none() && self.ticket.is_in_flight() {
            self.offered = self.ticket.session().map(|session| {
                let session = session.clone();
                Offered::new(session, self.ticket.id)
            });
        }
    }

    /// The client may lose the answer on its way, and come back for it.
    fn remember(&mut self) {
        if let (Some(_), Some(session)) = (self.offered.take(), self.ticket.session()) {
            session.resumable.remember(self.ticket.id, &self.asker);
        }
    }

    /// The caller went away before the answer, or comes back on another stream.
    fn leave(self) {
        let (Some(offered), Some(until)) = (self.offered, self.messages.resumable_until()) else {
            return;
        };
        if self.over {
            return;
        }
        let call = Call {
            gateway: self.gateway,
            permit: self.permit,
            entry: self.entry,
            courier: self.courier,
            ticket: self.ticket,
            asker: self.asker,
        };
        let lost = Box::new(Lost {
            session: offered.session().clone(),
            call,
            until,
        });
        match self.claim {
            Some(claim) => offered.hand_over(lost, claim),
            None => offered.keep(lost),
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

/// A relay whose stream is open; the caller may close it at any moment.
struct Streaming(Option<Box<Relay>>);

impl Drop for Streaming {
    fn drop(&mut self) {
        if let Some(relay) = self.0.take() {
            relay.leave();
        }
    }
}

/// The event that ends a stream.
pub(in crate::gateway) fn last(pieces: &[Bytes], mut out: BytesMut, _proof: Proof) -> Bytes {
    sse::encode(&mut out, pieces);
    out.freeze()
}
