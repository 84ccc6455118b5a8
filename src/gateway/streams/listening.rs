//! The stream of what a server says unasked, in a session.

use bytes::Bytes;
use futures_util::{Stream, stream};
use http::{HeaderValue, Response};

use super::{
    Place,
    courier::{Courier, Line},
    event_id::{Marks, Stream as Named},
    relay,
};
use crate::{
    deadline::Deadline,
    gateway::{
        Ask, Entry, Gateway, ReplyBody,
        connection::{self, waiting::Waiting},
        reply::{self, finding, results::Turn},
        request::entry::Ending,
        session::{
            Listening,
            lifecycle::{lose, session_of},
        },
    },
    mcp::{Era, headers, sse},
    policy::Permit,
    refusal::{Code, Refusal},
    upstream::Messages,
};

/// Opens the stream of what the server says unasked, or resumes it after the server's event `last`.
pub(super) async fn listen(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
    mut entry: Box<Entry>,
    last: Option<HeaderValue>,
) -> Response<ReplyBody> {
    entry.record().method = Some("GET".into());
    let opening = async {
        let session = session_of(gateway, ask, permit)?;
        check_accept(ask)?;
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
            .listen(
                permit,
                &session.upstream,
                last.as_ref(),
                Deadline::of_open_stream(),
            )
            .await
            .inspect_err(|error| lose(gateway, &session, error.code()));
        let opened = match opened {
            Err(error) if connection::is_missing(error.code()) => Opened::Unconnected,
            opened => opened?.map_or(Opened::None, |messages| {
                Opened::Messages(Box::new(messages))
            }),
        };
        Ok::<_, Refusal>((session, place, stream, opened))
    };
    match opening.await {
        Ok((.., Opened::None)) => {
            let refusal = Refusal::new(Code::MethodNotAllowed, "this server offers no stream");
            finding::unread(entry, Era::Legacy, &refusal.into())
        }
        Ok((_, place, stream, Opened::Unconnected)) => {
            entry.listens();
            let waiting = Waiting {
                gateway: gateway.clone(),
                permit: permit.clone(),
                place,
                stream,
                entry,
            };
            reply::events(waiting.events())
        }
        Ok((session, place, stream, Opened::Messages(messages))) => {
            let marks = Marks::new(Named::Listening, Some(&session));
            let line = Line::Session {
                session,
                call: None,
                pause: None,
            };
            entry.listens();
            let turn = Turn::of(&entry, ask.policy.calls.turn_bytes);
            let listener = Listener {
                courier: Courier::new(gateway, permit, line, turn),
                place,
                stream,
                messages,
                marks,
                entry,
            };
            reply::events(listener.events())
        }
        Err(refusal) => finding::unread(entry, Era::Legacy, &refusal.into()),
    }
}

/// What a server does that is asked for its stream.
enum Opened {
    /// It offers none.
    None,
    /// It was not asked: its caller has no connection.
    Unconnected,
    Messages(Box<Messages>),
}

/// A GET asks for an event stream.
pub(super) fn check_accept(ask: &Ask) -> Result<(), Refusal> {
    if headers::accepts_stream(&ask.head.headers) {
        return Ok(());
    }
    Err(Refusal::new(
        Code::Accept,
        "`Accept` does not list text/event-stream",
    ))
}

/// A listening stream, open until either side ends it, the session does, or its place is lost.
struct Listener {
    courier: Courier,
    place: Listening,
    stream: Place,
    messages: Box<Messages>,
    marks: Marks,
    entry: Box<Entry>,
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
        let mut out = self.messages.buffer();
        while let Some(event) = self.messages.take_event() {
            self.marks.carry(event, &mut out, &self.courier);
        }
        if out.is_empty() {
            sse::KEEP_ALIVE
        } else {
            self.messages.attach(out.freeze())
        }
    }
}
