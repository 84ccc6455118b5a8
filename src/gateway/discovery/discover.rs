//! `server/discover`: the server's own answer, cut to what is relayed.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{pinning, whole};
use crate::{
    gateway::{
        Ask, Asked, Entry, Finding, Gateway,
        connection::{self, offered, standing},
        request::asker::malformed,
    },
    mcp::{Revision, capabilities::of_server, greeting},
    policy::Permit,
    refusal::{Code, Refusal},
    upstream::{Edit, Message},
};

/// Answers one `server/discover`.
pub(in crate::gateway) async fn discover(
    gateway: &Gateway,
    ask: &Ask,
    asked: &Asked<'_>,
    permit: &Permit,
    entry: &mut Entry,
) -> Result<Finding, Refusal> {
    let message = match whole::answer(gateway, asked, permit, entry).await {
        Err(refusal) if connection::is_missing(refusal.code) => {
            return unconnected(gateway, ask, permit, refusal).await;
        }
        found => found?,
    };
    let mut edits = cut(permit, &message)?;
    let instructions = instructions(permit, &message)?;
    edits.extend(
        pinning::instructions(gateway, permit, asked.view(permit), &message, instructions).await?,
    );
    Ok(Finding::Message {
        message,
        edits,
        scope: None,
        session: None,
    })
}

/// What a caller without a connection is told. Of a server whose era is not known yet nothing is promised: clients of both
/// eras open a session then, and learn the era once it is connected.
async fn unconnected(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
    refusal: Refusal,
) -> Result<Finding, Refusal> {
    if gateway.upstream.is_known_modern(permit.server()) {
        let withheld = offered::is_withheld(&ask.policy, refusal.code);
        return standing::discovery(gateway, permit, withheld).await;
    }
    let link = gateway.shared.connections.link(&permit.server().name);
    let public = format!("{}: {link}", refusal.public);
    Err(Refusal::new(Code::UpstreamSessionsOnly, public))
}

/// The instructions in a result, a JSON text.
pub(in crate::gateway) fn instructions<'m>(
    permit: &Permit,
    message: &'m Message,
) -> Result<Option<&'m str>, Refusal> {
    let found = greeting::instructions(message.result().unwrap_or("{}"));
    found.map_err(|unclear| malformed(permit, format!("what it says of itself: {unclear}")))
}

#[derive(Deserialize)]
struct Discovery<'a> {
    #[serde(borrow, rename = "supportedVersions")]
    supported_versions: Option<&'a RawValue>,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
}

/// Cuts capabilities to what is relayed and versions to those that are spoken; everything else stays as the server wrote
/// it.
fn cut(permit: &Permit, message: &Message) -> Result<Vec<Edit>, Refusal> {
    let Some(result) = message.result() else {
        return Ok(Vec::new());
    };
    let discovery: Discovery<'_> = serde_json::from_str(result)
        .map_err(|error| malformed(permit, format!("its answer to server/discover: {error}")))?;
    let capabilities = discovery
        .capabilities
        .map(|raw| (raw, of_server(raw.get())));
    let versions = discovery.supported_versions.map(|raw| (raw, spoken(raw)));
    let edits = capabilities.into_iter().chain(versions);
    Ok(edits
        .filter_map(|(raw, text)| {
            let place = message.part_of_result(raw.get())?;
            Some(Edit { place, text })
        })
        .collect())
}

/// Of the server's versions those that Tollgate speaks too.
fn spoken(versions: &RawValue) -> String {
    let versions: Vec<String> = serde_json::from_str(versions.get()).unwrap_or_default();
    let spoken = Revision::SERVED.map(Revision::as_str).into_iter();
    let both: Vec<String> = spoken
        .filter(|served| versions.iter().any(|version| version == served))
        .map(|served| format!("\"{served}\""))
        .collect();
    format!("[{}]", both.join(","))
}
