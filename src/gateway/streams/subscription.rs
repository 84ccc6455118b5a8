//! `subscriptions/listen`: what a modern server says unasked, on one stream upstream for each of the client's
//! (MCP 2026-07-28, subscriptions).

use std::ops::ControlFlow;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Place, relay};
use crate::{
    deadline::Deadline,
    egress::Effect,
    gateway::{
        Ask, Asked, Entry, Finding, Gateway,
        connection::{offered, waiting::subscription::Awaited},
        discovery::pinning,
        reply::{
            Proof,
            results::{self, Fitted},
        },
        request::{
            asker::{Asker, malformed},
            entry::Ending,
        },
    },
    mcp::{Envelope, News, envelope::splice, reply, scan::Part, sse},
    policy::Permit,
    refusal::Refusal,
    upstream::{Edit, Item, Message, Messages, ResultKind},
};

/// Opens the stream.
pub(in crate::gateway) async fn listen(
    gateway: &Gateway,
    ask: &Ask,
    asked: &Asked<'_>,
    permit: &Permit,
    entry: &mut Entry,
) -> Result<Finding, Refusal> {
    let now = gateway.shared.clock.now();
    let place = gateway.shared.streams.open(&ask.caller, permit, now)?;
    entry.admit_read()?;
    let ticket = asked.ticket(gateway)?;
    let deadline = Deadline::of_open_stream();
    let request = asked.request(permit, &ticket, None, &Effect::Read, deadline);
    let answered = gateway.upstream.subscribe(request).await;
    let found = match entry.forwarded(gateway, permit, ticket, answered) {
        Err(refusal) if offered::is_withheld(&ask.policy, refusal.code) => {
            entry.listens();
            return Ok(Finding::Awaited(Awaited(place)));
        }
        found => found?,
    };
    Ok(match found {
        Finding::Stream(messages, ticket) => {
            entry.listens();
            Finding::Subscription(Opened {
                place,
                messages,
                id: ticket.id,
            })
        }
        finding => finding,
    })
}

/// A stream that the server has opened.
pub(in crate::gateway) struct Opened {
    place: Place,
    messages: Box<Messages>,
    /// The request's id on the server's side, by which the server names the subscription.
    id: u64,
}

impl Opened {
    /// The client's stream.
    pub(in crate::gateway) fn events(
        self,
        gateway: &Gateway,
        asked: &Asked<'_>,
        permit: &Permit,
        entry: Box<Entry>,
    ) -> impl Stream<Item = Bytes> + Send + use<> {
        let listener = Listener {
            opened: self,
            asker: asked.asker.clone(),
            gateway: gateway.clone(),
            permit: permit.clone(),
            entry,
            acknowledged: false,
            over: false,
        };
        stream::unfold(listener, async |mut listener| {
            let bytes = listener.next().await?;
            Some((bytes, listener))
        })
    }
}

/// A subscription, open until either side ends it or its place is lost.
struct Listener {
    opened: Opened,
    /// The request, under its id on the client's side.
    asker: Asker,
    gateway: Gateway,
    permit: Permit,
    entry: Box<Entry>,
    acknowledged: bool,
    over: bool,
}

impl Listener {
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let waited = tokio::select! {
            biased;
            () = self.opened.place.ended() => return self.end(BytesMut::new()),
            waited = self.opened.messages.wait() => waited,
            () = tokio::time::sleep(relay::QUIET) => return Some(sse::KEEP_ALIVE),
        };
        match waited {
            Ok(_) => self.forward(),
            Err(error) => self.break_off(&error.refusal()),
        }
    }

    fn forward(&mut self) -> Option<Bytes> {
        let mut out = self.opened.messages.buffer();
        while let Some(item) = self.opened.messages.take() {
            match item {
                Item::Notification { news, text } => {
                    if self.carry(news, &text, &mut out).is_break() {
                        return self.end(out);
                    }
                }
                Item::Answer(message) => return self.finish(&message, out),
                // In the modern era servers ask in their answers, and no subscription has progress.
                Item::Request(_) | Item::Progress(_) => {}
            }
        }
        Some(if out.is_empty() {
            sse::KEEP_ALIVE
        } else {
            self.opened.messages.attach(out.freeze())
        })
    }

    /// Writes what is this subscription's, from the acknowledgement on. A notification that does not name it, which
    /// servers MUST, may be meant for another. Breaks where the server gives the subscription up.
    fn carry(&mut self, news: News, text: &Bytes, out: &mut BytesMut) -> ControlFlow<()> {
        if news == News::ListChanged {
            pinning::changed(&self.gateway, &self.permit, text);
        }
        let Ok(message) = Envelope::inbound(text) else {
            return ControlFlow::Continue(());
        };
        let own = |part: &Part<'_>| self.is_own(part.as_str());
        let ours = message.meta().and_then(|meta| meta.subscription_id);
        match (news, ours.filter(own)) {
            (News::Cancelled, _) => {
                let params = message.params.as_ref();
                let cancelled = params.and_then(|params| params.request_id);
                if cancelled.as_ref().is_some_and(own) {
                    return ControlFlow::Break(());
                }
            }
            (News::Acknowledged, Some(part)) if !self.acknowledged => {
                self.acknowledged = true;
                self.tell(text, part, out);
            }
            (News::ListChanged | News::ResourceUpdated, Some(part)) if self.acknowledged => {
                self.tell(text, part, out);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// Writes a notification under the id by which the client names the subscription.
    fn tell(&self, text: &Bytes, id: Part<'_>, out: &mut BytesMut) {
        let text = splice(text, &[(id.range(), &self.asker.id)]);
        if let Some(text) = results::said(&self.permit, text.into()) {
            sse::encode(out, &[&text]);
        }
    }

    /// The server ended the subscription, in order or not. Where its answer does not name it, ours stands for it.
    fn finish(&mut self, message: &Message, out: BytesMut) -> Option<Bytes> {
        let (fitted, mut edits) = match self.fitted(message) {
            Ok(fitted) => fitted,
            Err(refusal) => return self.break_off(&refusal),
        };
        match fitted.result_kind() {
            None => {}
            Some(ResultKind::Complete) if edits.is_empty() => match self.renaming(&fitted) {
                Some(edit) => edits.push(edit),
                None => return self.end(out),
            },
            Some(_) => return self.end(out),
        }
        let pieces = fitted.pieces(&self.asker.id, edits);
        self.close(Ending::with(message), &pieces, out)
    }

    /// The answer within the bounds of any other.
    fn fitted<'m>(&mut self, message: &'m Message) -> Result<Fitted<'m>, Refusal> {
        use ResultKind::{InputRequired, Other};
        let (gateway, permit, asker) = (&self.gateway, &self.permit, &self.asker);
        if let Some(InputRequired | Other) = message.result_kind() {
            let reason = "a kind of result that was not agreed on";
            return Err(malformed(permit, reason));
        }
        let (fitted, edits) = results::fit(gateway, permit, asker, &mut self.entry, message)?;
        if fitted.error().is_some() {
            asker.edits(gateway, permit, &fitted, asker.scope, None)?;
        }
        Ok((fitted, edits))
    }

    /// The edit that puts the client's id in place of ours.
    fn renaming(&self, message: &Message) -> Option<Edit> {
        let ended: Ended<'_> = serde_json::from_str(message.result()?).ok()?;
        let id = ended.meta?.subscription_id?.get();
        let place = message.part_of_result(id).filter(|_| self.is_own(id))?;
        let text = self.asker.id_text().unwrap_or("null").to_owned();
        Some(Edit { place, text })
    }

    /// Ends the subscription in order, with an answer of our own.
    fn end(&mut self, out: BytesMut) -> Option<Bytes> {
        let answer = reply::unsubscribed(self.asker.id_text().unwrap_or("null"));
        self.close(Ending::answered(), &[answer], out)
    }

    fn close(&mut self, ending: Ending, pieces: &[Bytes], out: BytesMut) -> Option<Bytes> {
        self.over = true;
        // Without its record, the stream ends without an answer.
        let proof: Proof = self.entry.close_queued(ending).ok()?;
        let last = relay::last(pieces, out, proof);
        Some(self.opened.messages.attach(last))
    }

    /// The stream ends as the server's did, without an answer; the client listens anew.
    fn break_off(&mut self, refusal: &Refusal) -> Option<Bytes> {
        self.over = true;
        drop(self.entry.close_queued(Ending::without(refusal)));
        None
    }

    fn is_own(&self, id: &str) -> bool {
        id == itoa::Buffer::new().format(self.opened.id)
    }
}

/// The result that ends a subscription.
#[derive(Deserialize)]
struct Ended<'a> {
    #[serde(borrow, rename = "_meta")]
    meta: Option<EndedMeta<'a>>,
}

#[derive(Deserialize)]
struct EndedMeta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/subscriptionId")]
    subscription_id: Option<&'a RawValue>,
}
