//! Lists of what a model sees: the server's own page, less what is not as it was pinned, hidden or of no use.

use std::sync::Arc;

use super::{
    pinning,
    sheets::{self, Sheet},
    unfit, whole,
};
use crate::{
    catalog::MAX_TOOLS,
    deadline::Deadline,
    gateway::{
        Ask, Asked, Entry, Finding, Gateway, builtin,
        connection::{self, offered, standing},
        request::asker::{Scope, malformed},
    },
    mcp::items::{Fate, List},
    policy::Permit,
    refusal::Refusal,
    upstream::{Edit, Message},
};

/// Answers a request for one page of `list`; callers without a connection are shown what is pinned.
pub(in crate::gateway) async fn list(
    gateway: &Gateway,
    ask: &Ask,
    asked: &Asked<'_>,
    permit: &Permit,
    entry: &mut Entry,
    list: List,
) -> Result<Finding, Refusal> {
    let awaited =
        list == List::Tools && permit.server().builtin && builtin::awaited(gateway, ask).await;
    match shown(gateway, asked, permit, entry, list, awaited).await {
        Err(refusal) if connection::is_missing(refusal.code) => {
            let withheld = offered::is_withheld(&ask.policy, refusal.code);
            standing::list(gateway, asked, permit, list, (awaited, withheld)).await
        }
        found => found,
    }
}

/// What the server shows.
async fn shown(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    entry: &mut Entry,
    list: List,
    awaited: bool,
) -> Result<Finding, Refusal> {
    entry.admit_read()?;
    let deadline = Deadline::after(permit.server().limits.call);
    let book = pinning::settled(gateway, asked, permit, list, deadline).await?;
    let message = whole::answer(gateway, asked, permit, entry).await?;
    let Some(sheet) = Sheet::read(&message, list).await? else {
        return Ok(message.into());
    };
    let view = asked.view(permit);
    let usable = sheet.shown.iter().any(|shown| shown.item.is_ok());
    if !book.is_settled(view, list) && usable {
        let reason = "it showed nothing, or an error, and a moment later a list";
        return Err(malformed(permit, reason));
    }
    let mut judged = book.judge(view, asked.asker.era, list, &sheet.shown);
    unfit::warn(&permit.server().name, &judged.unfit);
    pinning::report(gateway, permit, judged.report).await?;
    if list == List::Tools {
        let names = sheet.shown.iter().map(|shown| &*shown.name);
        let hidden = names.map(|name| permit.hidden(name) || builtin::is_reserved(name));
        for (fate, hidden) in judged.fates.iter_mut().zip(hidden) {
            if hidden {
                *fate = Fate::Drop;
            }
        }
    }
    rewritten(permit, message, list, &judged.fates, awaited)
}

/// What is pinned may not make a page longer than an answer may be.
pub(in crate::gateway) fn check_size(permit: &Permit, bytes: usize) -> Result<(), Refusal> {
    let max = permit.server().limits.response_bytes;
    if bytes > max {
        return Err(sheets::too_large(
            permit,
            &format!("{max} bytes a page, as pinned"),
        ));
    }
    Ok(())
}

/// The page after each item met its fate; one of which all stay goes on byte for byte.
fn rewritten(
    permit: &Permit,
    message: Message,
    list: List,
    fates: &[Fate<Arc<str>>],
    awaited: bool,
) -> Result<Finding, Refusal> {
    let replaced = fates.iter().map(|fate| match fate {
        Fate::Replace(text) => text.len(),
        Fate::Keep | Fate::Drop => 0,
    });
    check_size(permit, replaced.sum())?;
    let edit = message.page(list, MAX_TOOLS)?.and_then(|page| {
        if list == List::Tools {
            builtin::warn_of(permit, &page);
        }
        let is_last = page.next_cursor.is_none();
        let own = builtin::beside(permit, list, awaited).filter(|_| is_last);
        let text = page.rewritten(fates, own.as_deref())?;
        let place = page.range();
        Some(Edit { place, text })
    });
    // What is taken out may be another caller's, and so is what awaits a connection; what else is Tollgate's own stands in
    // everybody's list.
    let all = fates.iter().all(|fate| matches!(fate, Fate::Keep));
    let scope = (!all || awaited).then_some(Scope::Private);
    let Some(edit) = edit else {
        return Ok(message.into());
    };
    Ok(Finding::Message {
        message,
        edits: vec![edit],
        scope,
        session: None,
    })
}
