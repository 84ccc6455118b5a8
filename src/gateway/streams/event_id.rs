//! The ids of events on their way to the client (MCP 2025-11-25, transports, resumability): which stream, and the
//! server's own id in it.

use bytes::{BufMut as _, BytesMut};
use http::HeaderValue;

use super::courier::Courier;
use crate::{
    gateway::session::Session,
    mcp::{Revision, sse},
    upstream::{Event, Mark},
};

/// A stream that can be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// The one of what the server says unasked.
    Listening,
    /// The one that answers the request of this id on the upstream's side.
    Call(u64),
}

/// How the events of one stream are marked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    stream: Stream,
    /// Whether the client knows events that carry no message.
    primes: bool,
}

impl Marks {
    /// Outside sessions no event has an id, so nothing is marked.
    pub(super) fn new(stream: Stream, session: Option<&Session>) -> Self {
        Self {
            stream,
            primes: session
                .is_some_and(|session| session.upstream.revision() == Revision::V2025_11_25),
        }
    }

    /// Writes an event that holds no answer: what `courier` makes of its message, and the rest around it.
    pub(super) fn carry(&self, event: Event, out: &mut BytesMut, courier: &Courier) {
        let before = out.len();
        let mark = event.mark.as_deref();
        self.begin(mark, out);
        let begun = out.len();
        match event.item {
            Some(item) => courier.carry(item, out),
            None if !self.primes || begun == before => {}
            None if mark.is_some_and(|mark| mark.id.is_some()) => sse::encode_nothing(out),
            None => out.put_u8(b'\n'),
        }
        // What does not go on leaves no trace.
        if out.len() == begun {
            out.truncate(before);
        }
    }

    /// Writes what stands above the data of the event that follows.
    pub(super) fn begin(&self, mark: Option<&Mark>, out: &mut BytesMut) {
        let Some(Mark { id, retry }) = mark else {
            return;
        };
        if let Some(id) = id {
            let mut buffer = itoa::Buffer::new();
            let stream = match self.stream {
                Stream::Listening => LISTENING,
                Stream::Call(call) => buffer.format(call),
            };
            sse::encode_id(out, &[stream.as_bytes(), b".", id.as_bytes()]);
        }
        if let Some(retry) = retry.filter(|_| self.primes) {
            sse::encode_retry(out, retry.as_millis());
        }
    }
}

const LISTENING: &str = "g";

/// The stream and the server's own id that an id of ours names; `None` where it is none of ours.
pub(super) fn read(id: &str) -> Option<(Stream, HeaderValue)> {
    let (stream, theirs) = id.split_once('.')?;
    let stream = match stream {
        LISTENING => Stream::Listening,
        call => Stream::Call(call.parse().ok()?),
    };
    let mut theirs = HeaderValue::from_str(theirs)
        .ok()
        .filter(|id| !id.is_empty())?;
    theirs.set_sensitive(true);
    Some((stream, theirs))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(stream: Stream, id: &str) -> String {
        let marks = Marks {
            stream,
            primes: true,
        };
        let id = HeaderValue::from_str(id).expect("a header value");
        let mut out = BytesMut::new();
        let mark = Mark {
            id: Some(id),
            retry: None,
        };
        marks.begin(Some(&mark), &mut out);
        String::from_utf8(out.to_vec()).expect("ASCII")
    }

    #[test]
    fn an_id_names_the_stream_and_the_servers_event() {
        assert_eq!(written(Stream::Call(7), "a.b-1"), "id: 7.a.b-1\n");
        assert_eq!(written(Stream::Listening, "3"), "id: g.3\n");
        for id in [
            "",
            "7",
            "7.",
            "g.",
            ".1",
            "-7.1",
            "x.1",
            "18446744073709551616.1",
        ] {
            assert_eq!(read(id), None, "{id}");
        }
    }

    proptest! {
        #[test]
        fn every_id_that_is_kept_comes_back(call: Option<u64>, id in "[!-~]{1,1024}") {
            let stream = call.map_or(Stream::Listening, Stream::Call);
            let line = written(stream, &id);
            let ours = line.strip_prefix("id: ").and_then(|line| line.strip_suffix('\n'));
            let (found, theirs) = read(ours.expect("an id line")).expect("an id of ours");
            prop_assert_eq!(found, stream);
            prop_assert_eq!(theirs.as_bytes(), id.as_bytes());
        }
    }
}
