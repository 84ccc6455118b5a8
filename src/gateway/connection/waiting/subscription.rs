//! `subscriptions/listen` of a client whose server is not offered until its person has connected (MCP 2026-07-28,
//! subscriptions): it ends with the news that there are other tools, so that the client lists them and listens anew.

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use serde::Deserialize;
use tokio::time::sleep;

use super::connected;
use crate::{
    gateway::{
        Asked, Entry, Gateway,
        request::entry::Ending,
        streams::{Place, relay},
    },
    mcp::{reply, sse},
    policy::Permit,
};

/// The place of such a stream among all.
pub(in crate::gateway) struct Awaited(pub(in crate::gateway) Place);

impl Awaited {
    /// The client's stream.
    pub(in crate::gateway) fn events(
        self,
        gateway: &Gateway,
        asked: &Asked<'_>,
        permit: &Permit,
        entry: Box<Entry>,
    ) -> impl Stream<Item = Bytes> + Send + use<> {
        let waiting = Waiting {
            gateway: gateway.clone(),
            permit: permit.clone(),
            place: self.0,
            entry,
            id: asked.asker.id_text().unwrap_or("null").to_owned(),
            of_tools: wants_tools(asked.body),
            acknowledged: false,
            over: false,
        };
        stream::unfold(waiting, async |mut waiting| {
            let bytes = waiting.next().await?;
            Some((bytes, waiting))
        })
    }
}

struct Waiting {
    gateway: Gateway,
    permit: Permit,
    place: Place,
    entry: Box<Entry>,
    /// The request's id, a JSON text.
    id: String,
    /// Whether the client wants to hear that tools have changed.
    of_tools: bool,
    acknowledged: bool,
    over: bool,
}

impl Waiting {
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        if !self.acknowledged {
            self.acknowledged = true;
            return Some(self.acknowledgement());
        }
        let connected = tokio::select! {
            biased;
            () = self.place.ended() => false,
            () = connected(&self.gateway, &self.permit) => true,
            () = sleep(relay::QUIET) => return Some(sse::KEEP_ALIVE),
        };
        self.over = true;
        let mut out = BytesMut::new();
        if connected && self.of_tools {
            self.say("tools/list_changed", "", &mut out);
        }
        // Without its record, the stream ends without an answer.
        let proof = self.entry.close_queued(Ending::answered()).ok()?;
        Some(relay::last(&[reply::unsubscribed(&self.id)], out, proof))
    }

    fn acknowledgement(&self) -> Bytes {
        let filter = match self.of_tools {
            true => r#""notifications":{"toolsListChanged":true},"#,
            false => r#""notifications":{},"#,
        };
        let mut out = BytesMut::new();
        self.say("subscriptions/acknowledged", filter, &mut out);
        out.freeze()
    }

    /// Writes a notification of this subscription; `params` are members with a comma behind them.
    fn say(&self, method: &str, params: &str, out: &mut BytesMut) {
        let id = &self.id;
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{{params}"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        );
        sse::encode(out, &[&Bytes::from(text)]);
    }
}

/// Whether the request names changes of tools among what it wants to hear.
fn wants_tools(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Request {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        notifications: Filter,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Filter {
        #[serde(default)]
        tools_list_changed: bool,
    }
    let request = serde_json::from_slice::<Request>(body);
    request.is_ok_and(|request| request.params.notifications.tools_list_changed)
}
