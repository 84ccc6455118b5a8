//! Prompts that are asked for by name: those that are not as they were pinned are not offered, and not given.

use std::borrow::Cow;

use serde::Deserialize;

use super::pinning;
use crate::{
    catalog::{Found, Reason},
    deadline::Deadline,
    gateway::{Asked, Gateway},
    mcp::{Method, items::List},
    policy::Permit,
    refusal::{Code, Refusal},
};

/// Refuses a request that is about a prompt which is not offered, or about a template which is known not to be.
pub(in crate::gateway) async fn check(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    deadline: Deadline,
) -> Result<(), Refusal> {
    let params = asked.message.params.as_ref();
    match asked.asker.method {
        Some(Method::PromptsGet) => {
            let name = params.and_then(|params| params.name?.string());
            let Some(name) = name else {
                return Err(Refusal::new(
                    Code::InvalidParams,
                    "`params.name` must be a string",
                ));
            };
            prompt(gateway, asked, permit, &name, deadline).await
        }
        Some(Method::Complete) => {
            let about = params.and_then(|params| params.about);
            match about.map(|about| serde_json::from_str::<About<'_>>(about.as_str())) {
                Some(Ok(About::Prompt { name })) => {
                    prompt(gateway, asked, permit, &name, deadline).await
                }
                Some(Ok(About::Resource { uri })) => template(gateway, asked, permit, &uri),
                Some(Err(_)) | None => Err(Refusal::new(
                    Code::InvalidParams,
                    "`params.ref` must name a prompt or a resource",
                )),
            }
        }
        _ => Ok(()),
    }
}

/// What a completion is for (MCP 2025-11-25, completion).
#[derive(Deserialize)]
#[serde(tag = "type")]
enum About<'a> {
    #[serde(rename = "ref/prompt")]
    Prompt {
        #[serde(borrow)]
        name: Cow<'a, str>,
    },
    #[serde(rename = "ref/resource")]
    Resource {
        #[serde(borrow)]
        uri: Cow<'a, str>,
    },
}

/// As with tools, the whole list is read where it is not known that the prompt is offered.
async fn prompt(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    name: &str,
    deadline: Deadline,
) -> Result<(), Refusal> {
    let catalog = &gateway.shared.catalog;
    let (view, list) = (asked.view(permit), List::Prompts);
    let mut found = catalog.find_other(permit, view, list, name);
    if found != Found::Offered(()) {
        // A server that answers with an error has no prompts.
        pinning::read_list(gateway, asked, permit, list, deadline).await?;
        found = catalog.find_other_read(permit, view, list, name);
    }
    let server = &permit.server().name;
    match found {
        Found::Offered(()) => Ok(()),
        Found::Blocked(reason) => Err(blocked(permit, "prompt", name, &reason)),
        Found::Unknown => Err(Refusal::new(
            Code::InvalidParams,
            format!("no prompt `{name}` on server `{server}`"),
        )),
    }
}

/// A resource need not be of a template, so that one of which nothing is known is the server's own to judge.
fn template(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    uri: &str,
) -> Result<(), Refusal> {
    let (catalog, view) = (&gateway.shared.catalog, asked.view(permit));
    match catalog.find_other(permit, view, List::Templates, uri) {
        Found::Blocked(reason) => Err(blocked(permit, "template", uri, &reason)),
        Found::Offered(()) | Found::Unknown => Ok(()),
    }
}

fn blocked(permit: &Permit, what: &str, name: &str, reason: &Reason) -> Refusal {
    let server = &permit.server().name;
    Refusal::new(
        reason.code(),
        format!("{what} `{name}` of server `{server}` is not offered: {reason}"),
    )
}
