//! `tools/list`: the server's own page, less what is hidden; and the whole list, read to find a tool.

use super::{
    Asked, Entry, Finding, Gateway,
    asker::{Scope, malformed},
    builtin, own, unfit, whole,
};
use crate::{
    catalog::{MAX_TOOLS, Tool},
    deadline::Deadline,
    egress::Effect,
    mcp::Era,
    policy::Permit,
    refusal::{Code, Refusal},
    upstream::{Edit, Message, Request},
};

/// Pages of one list at most.
const MAX_PAGES: usize = 256;

/// Answers one `tools/list`.
pub(super) async fn list(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    entry: &mut Entry,
) -> Result<Finding, Refusal> {
    let message = whole::answer(gateway, asked, permit, entry).await?;
    offer(gateway, permit, asked.asker.era, message)
}

/// Learns a page and takes out of it what is hidden or cannot be used; a page without any goes on byte for byte.
fn offer(
    gateway: &Gateway,
    permit: &Permit,
    era: Era,
    message: Message,
) -> Result<Finding, Refusal> {
    let Some(page) = message.page(MAX_TOOLS)? else {
        return Ok(message.into());
    };
    gateway.shared.catalog.learn(permit, &page.tools);
    unfit::warn(&permit.server().name, era, &page);
    let offered = page.filtered(|tool| {
        !permit.hidden(&tool.name) && !builtin::is_reserved(&tool.name) && tool.unfit(era).is_none()
    });
    // What is taken out may be another caller's; what is Tollgate's own stands in everybody's list.
    let scope = offered.as_ref().map(|_| Scope::Private);
    let Some(kept) = builtin::listed(permit, &page, offered) else {
        return Ok(message.into());
    };
    let place = page.range();
    let text = String::from_utf8_lossy(&kept).into_owned();
    let edits = vec![Edit { place, text }];
    Ok(Finding::Message {
        message,
        edits,
        scope,
        session: None,
    })
}

/// Reads all pages of the list, unless another call has just done so.
pub(super) async fn read_whole(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    deadline: Deadline,
) -> Result<(), Refusal> {
    let Some(turn) = gateway.shared.catalog.turn(permit).await else {
        return Ok(());
    };
    let _leave = gateway.upstream.admit(permit)?;
    let mut tools: Vec<Tool> = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let message = read_one(gateway, asked, permit, cursor.as_deref(), deadline).await?;
        let Some(page) = message.page(MAX_TOOLS)? else {
            return Err(malformed(permit, "it answered tools/list with an error"));
        };
        tools.extend(page.tools.iter().filter_map(Tool::of));
        if tools.len() > MAX_TOOLS {
            return Ok(turn.finish(tools)?);
        }
        cursor = page.next_cursor.map(|cursor| cursor.as_str().to_owned());
        if cursor.is_none() {
            return Ok(turn.finish(tools)?);
        }
    }
    Err(Refusal::new(
        Code::CatalogTooLarge,
        format!(
            "server `{}` offers more than {MAX_PAGES} pages of tools",
            permit.server().name
        ),
    ))
}

async fn read_one(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    cursor: Option<&str>,
    deadline: Deadline,
) -> Result<Message, Refusal> {
    let id = gateway.upstream.next_id();
    let request = Request {
        permit,
        wire: asked.wire(|| own::headers("tools/list")),
        body: own::list_body(asked.asker.era, id, cursor),
        id,
        effect: &Effect::Read,
        deadline,
    };
    let (message, _) = gateway.upstream.ask_whole(request).await?;
    Ok(message?)
}
