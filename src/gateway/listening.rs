//! The stream of what a server says unasked, in a session.

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use http::Response;

use super::{
    Ask, Entry, Gateway, ReplyBody,
    courier::{Courier, Line},
    entry::Ending,
    finding,
    legacy::session_of,
    relay, reply,
    session::Listening,
    streams::Place,
};
use crate::{
    deadline::Deadline,
    mcp::{Era, headers, sse},
    policy::Permit,
    refusal::{Code, Refusal},
    upstream::Messages,
};

/// Opens the stream of what the server says unasked.
pub(super) async fn listen(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
    mut entry: Entry,
) -> Response<ReplyBody> {
    entry.record().method = Some("GET".into());
    let opening = async {
        let session = session_of(gateway, ask, permit)?;
        if !headers::accepts_stream(&ask.head.headers) {
            return Err(Refusal::new(
                Code::Accept,
                "`Accept` does not list text/event-stream",
            ));
        }
        let place = session.listen().ok_or_else(|| {
            Refusal::new(
                Code::AlreadyListening,
                "another stream of this session is open",
            )
        })?;
        let now = gateway.shared.clock.now();
        let stream = gateway.shared.streams.open(&ask.caller, permit, now)?;
        entry.admit_read()?;
        let opened = gateway
            .upstream
            .listen(permit, &session.upstream, Deadline::of_open_stream())
            .await?;
        Ok((session, place, stream, opened))
    };
    match opening.await {
        Ok((.., None)) => {
            let refusal = Refusal::new(Code::MethodNotAllowed, "this server offers no stream");
            finding::unread(entry, Era::Legacy, &refusal.into())
        }
        Ok((session, place, stream, Some(messages))) => {
            let line = Line::Session {
                session,
                call: None,
            };
            entry.listens();
            let listener = Listener {
                courier: Courier::new(gateway, permit, line),
                place,
                stream,
                messages,
                entry,
            };
            reply::events(listener.events())
        }
        Err(refusal) => finding::unread(entry, Era::Legacy, &refusal.into()),
    }
}

/// A listening stream, open until either side ends it, the session does, or its place is lost.
struct Listener {
    courier: Courier,
    place: Listening,
    stream: Place,
    messages: Messages,
    entry: Entry,
}

impl Listener {
    fn events(self) -> impl Stream<Item = Bytes> + Send {
        stream::unfold(self, async |mut listener| {
            let bytes = listener.next().await?;
            Some((bytes, listener))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        let waited = tokio::select! {
            biased;
            () = self.place.ended() => Ok(false),
            () = self.stream.ended() => Ok(false),
            waited = self.messages.wait() => waited,
            () = tokio::time::sleep(relay::QUIET) => return Some(sse::KEEP_ALIVE),
        };
        if let Ok(true) = waited {
            return Some(self.forward());
        }
        let ending = match waited {
            Err(error) => Ending::without(&error.refusal()),
            Ok(_) => Ending::answered(),
        };
        // The stream ends whether or not that could be recorded.
        drop(self.entry.close_queued(ending));
        None
    }

    fn forward(&mut self) -> Bytes {
        let mut out = BytesMut::new();
        while let Some(item) = self.messages.take() {
            self.courier.carry(item, &mut out);
        }
        if out.is_empty() {
            sse::KEEP_ALIVE
        } else {
            self.messages.attach(out.freeze())
        }
    }
}
