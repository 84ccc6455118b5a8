//! A response to a request: a result or an error, its JSON text kept as the server wrote it.

use std::ops::Range;

use bytes::Bytes;
use http::StatusCode;

use super::Error;
use crate::{
    egress::Body,
    mcp::{
        Envelope, Kind,
        envelope::splice,
        items::{List, Page},
        scan::Part,
    },
    policy::Permit,
    refusal::Refusal,
};

/// A message of so many bytes is one piece: to copy it costs less than to keep its pieces apart.
const SHORT: usize = 2048;

/// A response to the request that was asked.
#[derive(Clone)]
pub struct Message {
    /// The HTTP status that it came with; 200 in a stream.
    pub status: StatusCode,
    /// The JSON text.
    bytes: Bytes,
    id: Option<Range<usize>>,
    payload: Payload,
}

/// A part of a message that is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The bytes that go.
    pub place: Range<usize>,
    /// The JSON text that comes.
    pub text: String,
}

#[derive(Clone)]
enum Payload {
    Result {
        whole: Range<usize>,
        is_error: bool,
        kind: ResultKind,
        meta: Option<Range<usize>>,
        content: Option<Range<usize>>,
    },
    Error {
        whole: Range<usize>,
        code: Option<i64>,
    },
}

impl Payload {
    fn of(envelope: &Envelope<'_>) -> Self {
        match (&envelope.result, &envelope.error) {
            (Some(result), _) => Self::Result {
                whole: result.whole.range(),
                is_error: result.is_error,
                kind: ResultKind::of(result.result_type),
                meta: result.meta.map(|meta| meta.range()),
                content: result.content.map(|content| content.range()),
            },
            (None, error) => Self::Error {
                whole: error
                    .as_ref()
                    .map(|error| error.whole.range())
                    .unwrap_or_default(),
                code: error.as_ref().and_then(|error| error.code),
            },
        }
    }
}

/// What `resultType` says (MCP 2026-07-28, results); sessions know no such member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// Nothing: an older server's result.
    Untold,
    /// `complete`.
    Complete,
    /// `input_required`: the server asks, and the request is to be repeated with the answers.
    InputRequired,
    /// Something that was not agreed on.
    Other,
}

impl ResultKind {
    fn of(part: Option<Part<'_>>) -> Self {
        let Some(part) = part else {
            return Self::Untold;
        };
        match part.string().as_deref() {
            Some("complete") => Self::Complete,
            Some("input_required") => Self::InputRequired,
            _ => Self::Other,
        }
    }
}

impl Message {
    /// Reads a response to the request `id`.
    pub(super) fn read(
        permit: &Permit,
        id: u64,
        status: StatusCode,
        bytes: Bytes,
    ) -> Result<Self, Error> {
        let malformed = |reason: String| Error::Malformed {
            server: permit.server().name.clone(),
            reason,
        };
        let envelope = Envelope::upstream(&bytes)
            .map_err(|refusal| malformed(refusal.detail.unwrap_or(refusal.public)))?;
        if envelope.kind != Kind::Response {
            return Err(malformed(
                "a request where the answer was expected".to_owned(),
            ));
        }
        Self::from_envelope(permit, id, status, &envelope, &bytes)
    }

    pub(super) fn from_envelope(
        permit: &Permit,
        id: u64,
        status: StatusCode,
        envelope: &Envelope<'_>,
        bytes: &Bytes,
    ) -> Result<Self, Error> {
        let payload = Payload::of(envelope);
        // A server that could not read a request answers it with a null id, and that can only be an error.
        let ours = match envelope.id_text() {
            Some(text) => text == itoa::Buffer::new().format(id),
            None => matches!(payload, Payload::Error { .. }),
        };
        if !ours {
            return Err(Error::WrongId {
                server: permit.server().name.clone(),
            });
        }
        Ok(Self {
            status,
            id: envelope.id.map(|id| id.part().range()),
            bytes: bytes.clone(),
            payload,
        })
    }

    /// The same, counted as long as it lives: it outlives the stream that it came on.
    pub(super) fn taken_from(mut self, body: &mut Body) -> Self {
        self.bytes = body.attach(self.bytes, 0);
        self
    }

    /// The JSON text under the caller's id and with parts of it replaced, in pieces that follow one another: of a long one,
    /// nothing of what stays is copied. The places do not overlap; they are those of [`Message::part_of_result`], [`Message::page`] and
    /// [`Message::meta_and_content`].
    pub fn pieces(&self, id: &Bytes, edits: Vec<Edit>) -> Vec<Bytes> {
        if self.id.is_none() && edits.is_empty() {
            return self.with_null_id_replaced(id).into();
        }
        if self.bytes.len() <= SHORT {
            return vec![self.spliced(id, &edits)];
        }
        let own = self.id.clone().map(|place| (place, id.clone()));
        let edits = edits.into_iter().map(|edit| (edit.place, edit.text.into()));
        let mut changes: Vec<(Range<usize>, Bytes)> = own.into_iter().chain(edits).collect();
        changes.sort_by_key(|(place, _)| place.start);
        let mut pieces = Vec::with_capacity(2 * changes.len() + 1);
        let mut at = 0;
        for (place, text) in changes {
            pieces.push(self.bytes.slice(at..place.start));
            pieces.push(text);
            at = place.end;
        }
        pieces.push(self.bytes.slice(at..));
        pieces
    }

    /// The result, if it is one.
    pub fn result(&self) -> Option<&str> {
        match &self.payload {
            Payload::Result { whole, .. } => std::str::from_utf8(&self.bytes[whole.clone()]).ok(),
            Payload::Error { .. } => None,
        }
    }

    /// Where the result stands; `None` for an error.
    pub fn result_place(&self) -> Option<Range<usize>> {
        match &self.payload {
            Payload::Result { whole, .. } => Some(whole.clone()),
            Payload::Error { .. } => None,
        }
    }

    /// The JSON text at `place`, a part of the message; unlike [`Message::result`], it is not looked at.
    pub fn at(&self, place: Range<usize>) -> &[u8] {
        &self.bytes[place]
    }

    /// Where the members `_meta` and `content` of the result stand, as far as it has them.
    pub fn meta_and_content(&self) -> [Option<Range<usize>>; 2] {
        match &self.payload {
            Payload::Result { meta, content, .. } => [meta.clone(), content.clone()],
            Payload::Error { .. } => [None, None],
        }
    }

    /// The same with `text`, valid JSON, in place of the result or error; a copy of it.
    pub fn replaced(&self, text: &str) -> Result<Self, Refusal> {
        let (Payload::Result { whole, .. } | Payload::Error { whole, .. }) = &self.payload;
        let bytes = Bytes::from(splice(&self.bytes, &[(whole.clone(), text.as_bytes())]));
        let envelope = Envelope::upstream(&bytes)?;
        Ok(Self {
            status: self.status,
            id: envelope.id.map(|id| id.part().range()),
            payload: Payload::of(&envelope),
            bytes: bytes.clone(),
        })
    }

    /// The error, if it is one.
    pub fn error(&self) -> Option<&str> {
        match &self.payload {
            Payload::Error { whole, .. } => std::str::from_utf8(&self.bytes[whole.clone()]).ok(),
            Payload::Result { .. } => None,
        }
    }

    /// What kind of result it is; `None` for an error.
    pub fn result_kind(&self) -> Option<ResultKind> {
        match self.payload {
            Payload::Result { kind, .. } => Some(kind),
            Payload::Error { .. } => None,
        }
    }

    /// An edit that puts `members`, JSON text without braces, in front of those of the result; `None` where that is no
    /// object.
    pub fn insertion(&self, members: &str) -> Option<Edit> {
        let whole = self.result_place()?;
        let inner = self.at(whole.clone()).strip_prefix(b"{")?;
        let is_empty = inner.trim_ascii() == b"}";
        let place = whole.start + 1;
        Some(Edit {
            place: place..place,
            text: format!("{members}{}", if is_empty { "" } else { "," }),
        })
    }

    /// Where a part that was borrowed from [`Message::result`] stands in the whole text.
    pub fn part_of_result(&self, part: &str) -> Option<Range<usize>> {
        let start = (part.as_ptr() as usize).checked_sub(self.bytes.as_ptr() as usize)?;
        let place = start..start.checked_add(part.len())?;
        (place.end <= self.bytes.len()).then_some(place)
    }

    /// The page in an answer that is one of `list`, of at most `max` items; `None` for an error.
    pub fn page(&self, list: List, max: usize) -> Result<Option<Page<'_>>, Refusal> {
        let result = Envelope::upstream(&self.bytes)?.result;
        result
            .map(|result| Page::read(result.whole, list, max))
            .transpose()
    }

    /// The number of a JSON-RPC error; `None` for a result.
    pub fn error_code(&self) -> Option<i64> {
        match self.payload {
            Payload::Error { code, .. } => Some(code.unwrap_or_default()),
            Payload::Result { .. } => None,
        }
    }

    /// Whether the answer says that the request failed: a JSON-RPC error, or a tool result with `isError`.
    pub fn is_error(&self) -> bool {
        match self.payload {
            Payload::Error { .. } => true,
            Payload::Result { is_error, .. } => is_error,
        }
    }

    /// Bytes of JSON text.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    fn spliced(&self, id: &Bytes, edits: &[Edit]) -> Bytes {
        let own = self.id.iter().map(|place| (place.clone(), &**id));
        let edits = edits.iter();
        let edits = edits.map(|edit| (edit.place.clone(), edit.text.as_bytes()));
        let mut changes: Vec<(Range<usize>, &[u8])> = own.chain(edits).collect();
        changes.sort_by_key(|(place, _)| place.start);
        splice(&self.bytes, &changes).into()
    }

    fn with_null_id_replaced(&self, id: &Bytes) -> [Bytes; 3] {
        let error = match &self.payload {
            Payload::Error { whole, .. } => self.bytes.slice(whole.clone()),
            Payload::Result { .. } => Bytes::from_static(b"null"),
        };
        let mut head = Vec::with_capacity(32 + id.len());
        head.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        head.extend_from_slice(id);
        head.extend_from_slice(br#","error":"#);
        [head.into(), error, Bytes::from_static(b"}")]
    }
}
