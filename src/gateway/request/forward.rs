//! What of a request goes on to the server: the same bytes, under our own id, offering only what is relayed.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header::CONNECTION};

use crate::{
    egress::FieldLines,
    gateway::{call::rounds::Round, session::questions},
    mcp::{
        Envelope, Revision,
        capabilities::Offer,
        envelope::{member_cut, splice},
        headers::{METHOD, NAME, PROTOCOL_VERSION},
        scan::Part,
    },
    policy::Relay,
    refusal::{Code, Refusal},
};

/// Headers that mirror annotated arguments (MCP 2026-07-28, transports); intermediaries pass them on.
const PARAM_PREFIX: &str = "mcp-param-";

/// The request's body for the server: its id replaced by `id`, which is unique on every server, so that two callers
/// with equal ids can never be taken for one another. Of a `round` before, it has the server's own state, and none of the
/// answers to what Tollgate asked.
pub(super) fn body(
    message: &Envelope<'_>,
    body: &Bytes,
    relay: Relay,
    round: Option<&Round>,
    id: u64,
) -> Bytes {
    let mut buffer = itoa::Buffer::new();
    let mut edits: Vec<(Range<usize>, &[u8])> = Vec::with_capacity(4);
    if let Some(own) = message.id {
        edits.push((own.part().range(), buffer.format(id).as_bytes()));
    }
    let offer = offer(message, relay);
    if let (Some(offer), Some(part)) = (&offer, capabilities(message)) {
        edits.push((part.range(), offer.as_json().as_bytes()));
    }
    if let Some(meta) = message.meta() {
        // Tollgate's own keys are between the agent and Tollgate.
        edits.extend(
            meta.own
                .iter()
                .map(|(_, part)| (part.range(), &b"null"[..])),
        );
    }
    if let Some(params) = &message.params {
        // Tasks are withheld: without this member, every server answers in line (MCP 2025-11-25, tasks).
        let task = params.task.map(|task| task.range());
        let mut state = None;
        if let (Some(answers), true) = (params.input_responses, round.is_some_and(Round::is_ours)) {
            edits.push((answers.range(), b"{}"));
        }
        if let (Some(round), Some(member)) = (round, params.request_state) {
            match round.state() {
                Some(own) => edits.push((member.value.range(), own.as_bytes())),
                None => state = Some(member.range()),
            }
        }
        let cuts = cuts(body, task, state).into_iter().flatten();
        edits.extend(cuts.map(|cut| (cut, &b""[..])));
    }
    edits.sort_by_key(|(range, _)| range.start);
    splice(body, &edits).into()
}

/// What to cut so that up to two members of one object go; neighbours go as one run, since they share a comma.
fn cuts(
    body: &[u8],
    one: Option<Range<usize>>,
    other: Option<Range<usize>>,
) -> [Option<Range<usize>>; 2] {
    let mut members = [one, other];
    if let [Some(one), Some(other)] = &members {
        let between = one.end.min(other.end)..one.start.max(other.start);
        let run = one.start.min(other.start)..one.end.max(other.end);
        // Any member between them would begin with the quote of its key.
        if !body[between].contains(&b'"') {
            members = [Some(run), None];
        }
    }
    members.map(|member| member.map(|member| member_cut(body, member)))
}

/// What of the client's capabilities a modern request offers; `None` where it has none.
pub(in crate::gateway) fn offer(message: &Envelope<'_>, relay: Relay) -> Option<Offer> {
    let part = capabilities(message).filter(|part| part.as_str() != "{}")?;
    Some(Offer::new(Some(part), |question| {
        questions::relayed(relay, question)
    }))
}

fn capabilities<'a>(message: &Envelope<'a>) -> Option<Part<'a>> {
    message.meta()?.client_capabilities
}

/// The header fields of a modern request: written anew, so that nothing else of the caller's goes along.
pub(super) fn fields(message: &Envelope<'_>, from: &HeaderMap) -> FieldLines {
    let mut fields = FieldLines::new();
    let revision = const { HeaderValue::from_static(Revision::MODERN.as_str()) };
    fields.add(&PROTOCOL_VERSION, &revision);
    // Held against the body already, so the caller's own spelling is the right one.
    if let Some(method) = from.get(METHOD) {
        fields.add(&METHOD, method);
    }
    if let (Some(name), Some(_)) = (from.get(NAME), crate::mcp::headers::mirrored_name(message)) {
        fields.add(&NAME, name);
    }
    for (name, value) in from {
        if name.as_str().starts_with(PARAM_PREFIX) && !hop_by_hop(name, from) {
            fields.add(name, value);
        }
    }
    fields
}

/// Headers that mirror arguments stand once each, in visible ASCII (MCP 2026-07-28, transports).
pub(super) fn check_params(from: &HeaderMap) -> Result<(), Refusal> {
    for name in from
        .keys()
        .filter(|name| name.as_str().starts_with(PARAM_PREFIX))
    {
        let mut values = from.get_all(name).iter();
        let one = values.next();
        if values.next().is_some() {
            return Err(Refusal::new(
                Code::HeaderDuplicate,
                format!("header `{name}` stands twice"),
            ));
        }
        if one.is_some_and(|value| value.to_str().is_err()) {
            return Err(Refusal::new(
                Code::HeaderMismatch,
                format!("header `{name}` is not visible ASCII"),
            ));
        }
    }
    Ok(())
}

/// Whether `Connection` says that a header is for this connection only (RFC 9110, section 7.6.1).
fn hop_by_hop(name: &HeaderName, from: &HeaderMap) -> bool {
    let listed = from
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok());
    listed
        .flat_map(|value| value.split(','))
        .any(|option| option.trim().eq_ignore_ascii_case(name.as_str()))
}

#[cfg(test)]
mod tests;
