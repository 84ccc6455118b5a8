//! `server/discover`: the server's own answer, cut to what is relayed.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Asked, Entry, Finding, Gateway, own, whole};
use crate::{
    mcp::Revision,
    policy::Permit,
    refusal::Refusal,
    upstream::{Error, Message},
};

/// Answers one `server/discover`.
pub(super) async fn discover(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    entry: &mut Entry,
) -> Result<Finding, Refusal> {
    let message = whole::answer(gateway, asked, permit, entry).await?;
    cut(permit, message)
}

#[derive(Deserialize)]
struct Discovery<'a> {
    #[serde(borrow, rename = "supportedVersions")]
    supported_versions: Option<&'a RawValue>,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
}

/// Replaces capabilities and versions; everything else stays as the server wrote it.
fn cut(permit: &Permit, message: Message) -> Result<Finding, Refusal> {
    let Some(result) = message.result() else {
        return Ok(Finding::Message(message));
    };
    let discovery: Discovery<'_> = serde_json::from_str(result).map_err(|error| {
        let server = permit.server().name.clone();
        Error::Malformed {
            server,
            reason: format!("its answer to server/discover: {error}"),
        }
        .refusal()
    })?;
    let capabilities = own::capabilities(discovery.capabilities, own::Listening::No);
    let versions = format!(r#"["{}"]"#, Revision::MODERN);
    let edits = [
        (discovery.capabilities, capabilities),
        (discovery.supported_versions, versions),
    ];
    let edits = own::edits(&message, edits);
    Ok(Finding::Changed {
        message,
        edits,
        session: None,
    })
}
