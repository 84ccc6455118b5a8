//! What the agent says about a request beside its message: conversation, turn, and what it wants less of.

use std::sync::Arc;

use http::HeaderMap;

use super::entry::Entry;
use crate::{
    gateway::{Ask, session::Session},
    mcp::{Envelope, Meta},
    refusal::{Code, Refusal},
};

/// The longest conversation or turn, in bytes.
const WORD_BYTES: usize = 128;

/// Headers, and keys under `io.tollgate/`, that would narrow what is offered. To ignore one would offer more than the
/// agent asked for.
const NARROWING: [(&str, &str); 2] = [("tollgate-tools", "tools"), ("tollgate-private", "private")];

/// Notes conversation and turn in the record: from the headers, their twins in `_meta`, or the session.
pub(super) fn note(
    ask: &Ask,
    message: &Envelope<'_>,
    session: Option<&Session>,
    entry: &mut Entry,
) -> Result<(), Refusal> {
    refuse_narrowing(&ask.head.headers, message.meta())?;
    let caller = &ask.caller;
    let conversation = agreed("conversation", caller.conversation.as_ref(), message.meta())?;
    let turn = agreed("turn", caller.turn.as_ref(), message.meta())?;
    entry.record().subject = Some(match (session, &conversation, &turn) {
        (Some(session), None, None) => session.subject().clone(),
        _ => {
            let conversation = conversation.or_else(|| session?.subject().conversation.clone());
            caller
                .clone()
                .in_conversation(conversation, turn)
                .subject()
                .clone()
        }
    });
    Ok(())
}

/// A header and its twin, which must agree where both are there.
fn agreed(
    name: &str,
    header: Option<&Arc<str>>,
    meta: Option<&Meta<'_>>,
) -> Result<Option<Arc<str>>, Refusal> {
    let Some(part) = meta.and_then(|meta| meta.own(name)) else {
        return Ok(header.cloned());
    };
    let word = part.string().filter(|word| {
        (1..=WORD_BYTES).contains(&word.len())
            && word.bytes().all(|byte| (0x21..=0x7e).contains(&byte))
    });
    let Some(word) = word else {
        return Err(Refusal::new(
            Code::InvalidParams,
            format!(
                "`io.tollgate/{name}` must be a string of 1 to {WORD_BYTES} visible ASCII characters"
            ),
        ));
    };
    match header {
        Some(header) if **header != *word => Err(Refusal::new(
            Code::HeaderMismatch,
            format!("the header and `io.tollgate/{name}` name different ones"),
        )),
        _ => Ok(Some(word.as_ref().into())),
    }
}

fn refuse_narrowing(headers: &HeaderMap, meta: Option<&Meta<'_>>) -> Result<(), Refusal> {
    for (header, key) in NARROWING {
        // There are few headers: to go through their names costs less than to look one up.
        let stands = headers.keys().any(|name| name.as_str() == header);
        if stands || meta.is_some_and(|meta| meta.own(key).is_some()) {
            return Err(Refusal::new(
                Code::InvalidRequest,
                format!("`{header}` is not available in this version"),
            ));
        }
    }
    Ok(())
}
