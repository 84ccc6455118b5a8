//! What servers say beside their answers: within bounds, with nothing hidden in it, and counted as far as it is text.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::{
    budget::{self, Text, hidden},
    gateway::{Entry, Gateway},
    mcp::{News, sse},
    policy::Permit,
    subject::Subject,
};

/// The turn that the texts on a stream count towards.
pub(in crate::gateway) struct Turn {
    subject: Arc<Subject>,
    /// Bytes that it may come to.
    most: usize,
}

impl Turn {
    /// That of `entry`.
    pub(in crate::gateway) fn of(entry: &Entry, most: usize) -> Self {
        Self {
            subject: entry.subject().clone(),
            most,
        }
    }

    /// A notice as the caller may have it. Of a turn that is spent, logs are left out, and progress says nothing more than
    /// how far it is.
    pub(in crate::gateway) fn notice(
        &self,
        gateway: &Gateway,
        permit: &Permit,
        news: News,
        text: Bytes,
    ) -> Option<Bytes> {
        let counted = match news {
            News::Log => text.len(),
            News::Progress => budget::spoken(&text),
            _ => 0,
        };
        let counted = counted.min(permit.server().limits.result_bytes);
        match news {
            _ if self.spend(gateway, counted) => said(permit, text),
            News::Log => None,
            _ => said(permit, budget::muted(written(&text)).into()),
        }
    }

    /// A run of progress, encoded as ours is: all of it as it came where nothing in it has to change.
    pub(in crate::gateway) fn run(
        &self,
        gateway: &Gateway,
        permit: &Permit,
        events: &[u8],
        out: &mut BytesMut,
    ) {
        let within = self.spend(gateway, budget::spoken(events));
        let short = events.len() <= permit.server().limits.result_bytes;
        let hides = || hidden::may_be_in(events) && hidden::find(written(events), 0).is_some();
        if within && short && !hides() {
            out.extend_from_slice(events);
            return;
        }
        let notices = written(events).split_terminator("\n\n");
        for (_, data) in notices.filter_map(|event| event.split_once("data: ")) {
            let data = match within {
                true => Bytes::copy_from_slice(data.as_bytes()),
                false => budget::muted(data).into(),
            };
            if let Some(said) = said(permit, data) {
                sse::encode(out, &[&said]);
            }
        }
    }

    /// Most notices are no text at all, and nobody looks anything up for them.
    fn spend(&self, gateway: &Gateway, bytes: usize) -> bool {
        let turns = &gateway.shared.budget.turns;
        bytes == 0 || turns.spend(&self.subject, bytes, self.most)
    }
}

/// What a server says, as the caller may have it: notices, and questions in a session. `None` for what cannot be made short
/// enough.
pub(in crate::gateway) fn said(permit: &Permit, text: Bytes) -> Option<Bytes> {
    let server = permit.server();
    match budget::bounded(Text::Message, written(&text), server.limits.result_bytes) {
        Ok(None) => Some(text),
        Ok(Some(bounded)) => Some(bounded.into()),
        Err(_too_long) => {
            tracing::info!(server = %server.name, bytes = text.len(), "a message is too long and was left out");
            None
        }
    }
}

/// It was read as JSON, which is UTF-8.
fn written(text: &[u8]) -> &str {
    std::str::from_utf8(text).unwrap_or_default()
}
