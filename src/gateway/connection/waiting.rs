//! Callers who wait for their person to connect: with a request that goes on then, or with a stream that says so.

pub(in crate::gateway) mod subscription;

use std::{collections::HashMap, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, sleep_until};

use super::{KEY, is_missing};
use crate::{
    deadline::Deadline,
    gateway::{
        Asked, Entry, Gateway, call::rounds, request::entry::Ending, session::Listening,
        streams::Place, streams::relay,
    },
    mcp::sse,
    policy::Permit,
};

/// How long a request waits for a person who was sent to the page.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a request looks whether the person is done. It may be another process that the browser speaks to.
const LOOK: Duration = Duration::from_millis(500);
/// How often a stream does.
const GLANCE: Duration = Duration::from_secs(10);
/// How long one look may take.
const LOOKING: Duration = Duration::from_secs(10);

/// Waits with a request that a client repeats because it has shown its person the page: who has just opened it is not
/// done yet.
pub(in crate::gateway) async fn person(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    deadline: Deadline,
) {
    if !rounds::is_own(gateway, asked, permit) || !has_gone(asked) {
        return;
    }
    let end = deadline.phase(PATIENCE);
    while Instant::now() < end && is_unconnected(gateway, permit, deadline).await {
        sleep(LOOK).await;
    }
}

/// Whether the client says that its person opened the page.
fn has_gone(asked: &Asked<'_>) -> bool {
    #[derive(Deserialize)]
    struct Answer {
        action: String,
    }
    let params = asked.message.params.as_ref();
    let answers = params.and_then(|params| params.input_responses);
    let answers = answers
        .and_then(|part| serde_json::from_str::<HashMap<String, &RawValue>>(part.as_str()).ok());
    let own = answers.and_then(|answers| answers.get(KEY).copied());
    let own = own.and_then(|own| serde_json::from_str::<Answer>(own.get()).ok());
    own.is_some_and(|own| own.action == "accept")
}

async fn is_unconnected(gateway: &Gateway, permit: &Permit, deadline: Deadline) -> bool {
    let found = gateway.upstream.credential(permit, deadline).await;
    found.is_err_and(|error| is_missing(error.code()))
}

/// The listening stream of a session whose server does not know of it: it ends with the news that there are other tools,
/// once the person has connected, so that the client lists them and listens to the server.
pub(in crate::gateway) struct Waiting {
    pub(in crate::gateway) gateway: Gateway,
    pub(in crate::gateway) permit: Permit,
    pub(in crate::gateway) place: Listening,
    pub(in crate::gateway) stream: Place,
    pub(in crate::gateway) entry: Box<Entry>,
}

impl Waiting {
    pub(in crate::gateway) fn events(self) -> impl Stream<Item = Bytes> + Send {
        stream::unfold(Some(self), async |waiting| {
            let mut waiting = waiting?;
            let (bytes, over) = waiting.next().await?;
            Some((bytes, (!over).then_some(waiting)))
        })
    }

    /// What leaves next, and whether it is the last.
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        let Self {
            gateway,
            permit,
            place,
            stream,
            entry,
        } = self;
        let connected = tokio::select! {
            biased;
            () = place.ended() => false,
            () = stream.ended() => false,
            () = connected(gateway, permit) => true,
            () = sleep(relay::QUIET) => return Some((sse::KEEP_ALIVE, false)),
        };
        // The stream ends whether or not that could be recorded.
        drop(entry.close_queued(Ending::answered()));
        connected.then(|| (news(), true))
    }
}

/// Returns once there is something to show the server.
async fn connected(gateway: &Gateway, permit: &Permit) {
    let mut made = gateway.shared.made.subscribe();
    while is_unconnected(gateway, permit, Deadline::after(LOOKING)).await {
        tokio::select! {
            _ = made.changed() => {}
            () = sleep_until(Instant::now() + GLANCE) => {}
        }
    }
}

fn news() -> Bytes {
    const CHANGED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let mut out = BytesMut::new();
    sse::encode(&mut out, &[&Bytes::from_static(CHANGED)]);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_news_is_one_event() {
        assert_eq!(
            news(),
            "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
        );
    }
}
