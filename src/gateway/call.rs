//! One `tools/call`, from top to bottom: the order is the product. Below it what is asked of its arguments, rounds of
//! questions, and the requests beside calls that go on as they are.

mod arguments;
mod mirrored;
pub(super) mod pass;
pub(super) mod rounds;

use std::{borrow::Cow, pin::pin, sync::Arc};

use crate::{
    approval,
    catalog::{Found, PinnedTool},
    deadline::Deadline,
    gateway::{
        Ask, Asked, Entry, Finding, Gateway, builtin,
        connection::{offered, waiting},
        discovery::pinning,
        request::asker::malformed,
    },
    mcp::items::List,
    policy::{Auth, Permit},
    refusal::{Code, Refusal},
    upstream::Request,
};

/// The longest tool name that is looked for, in bytes.
const NAME_BYTES: usize = 1024;

/// Judges, records and forwards one call.
pub(super) async fn call(
    gateway: &Gateway,
    ask: &Ask,
    asked: &Asked<'_>,
    permit: &Permit,
    entry: &mut Entry,
) -> Result<Finding, Refusal> {
    // What a call waits for counts against its own time.
    let deadline = Deadline::after(permit.server().limits.call);
    let name = named_tool(asked, entry)?;
    let ticket = asked.ticket(gateway)?;
    let lanes = &gateway.shared.lanes;
    let subject = entry.subject().clone();
    let calls = ask.policy.calls;
    entry.held.lane = Some(lanes.of_caller(&subject, calls, &ticket, deadline).await?);
    if permit.server().auth != Auth::None {
        // It counts as a call that runs. Rare beside, and its state large: boxed, it does not weigh on calls that show nothing.
        Box::pin(waiting::person(gateway, asked, permit, deadline)).await;
        if Box::pin(offered::is_withheld_now(gateway, ask, permit, deadline)).await {
            return offered::nothing(asked, permit);
        }
    }
    // Not even the list of tools is asked for while nothing can be recorded.
    gateway.shared.journal.admit_read()?;
    let tool = known_tool(gateway, asked, permit, entry, &name, deadline).await?;
    mirrored::check(asked, &tool)?;
    arguments::check(gateway, asked, &tool, deadline).await?;
    let round = rounds::resume(gateway, asked, permit)?;
    let consent = approval::consent(permit, &tool)?;
    // What is refused here has no intent.
    let upstream = &gateway.upstream;
    // Boxed, it weighs nothing on calls that show none.
    let credential = upstream.credential(permit, deadline).await?.map(Box::new);
    let seat = lanes.at_server(upstream, permit, &subject, &ticket, deadline);
    let (seat, _leave) = seat.await?;
    entry.held.server = Some(seat);
    let effect = entry.effect(consent).await?;
    ticket.check()?;
    let request = Request {
        credential: credential.as_deref(),
        ..asked.request(permit, &ticket, round.as_ref(), &effect, deadline)
    };
    let calling = pin!(upstream.call(&tool, request));
    let answered = ticket.unless_stopped(calling).await;
    entry.forwarded(gateway, permit, ticket, answered)
}

/// The name that the call gives; the size of the arguments is noted in the record.
fn named_tool<'a>(asked: &Asked<'a>, entry: &mut Entry) -> Result<Cow<'a, str>, Refusal> {
    let params = asked.message.params.as_ref();
    let name = params.and_then(|params| params.name?.string());
    let Some(name) = name.filter(|name| !name.is_empty() && name.len() <= NAME_BYTES) else {
        return Err(Refusal::new(
            Code::InvalidParams,
            format!("`params.name` must be a string of 1 to {NAME_BYTES} bytes"),
        ));
    };
    let arguments = params.and_then(|params| params.arguments);
    if arguments.is_some_and(|arguments| !arguments.is_object()) {
        return Err(Refusal::new(
            Code::InvalidParams,
            "`params.arguments` must be an object",
        ));
    }
    entry.record().args_bytes = arguments.map(|arguments| arguments.as_str().len());
    Ok(name)
}

/// The tool of this name, if this caller is offered it: absent, hidden and unknown look alike.
async fn known_tool(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    entry: &mut Entry,
    name: &str,
    deadline: Deadline,
) -> Result<PinnedTool, Refusal> {
    let (catalog, era) = (&gateway.shared.catalog, asked.asker.era);
    let view = asked.view(permit);
    let mut found = catalog.find(permit, view, era, name);
    let known = match &found {
        Found::Offered(tool) => tool.shared_name(),
        _ => Arc::from(name),
    };
    entry.record().tool = Some(known);
    if !matches!(found, Found::Offered(_)) {
        // Rare, and its state large: boxed, it does not weigh on every call.
        let reading = pinning::read_list(gateway, asked, permit, List::Tools, deadline);
        if !Box::pin(reading).await? {
            return Err(malformed(permit, "it answered tools/list with an error"));
        }
        found = catalog.find_read(permit, view, era, name);
    }
    let server = &permit.server().name;
    match found {
        Found::Offered(tool) if !withheld(permit, tool.name()) => Ok(tool),
        Found::Blocked(reason) if !withheld(permit, name) => Err(Refusal::new(
            reason.code(),
            format!("tool `{name}` of server `{server}` is not offered: {reason}"),
        )),
        Found::Offered(_) | Found::Blocked(_) | Found::Unknown => Err(Refusal::new(
            Code::ToolUnknown,
            format!("no tool `{name}` on server `{server}`"),
        )),
    }
}

/// Whether no caller is offered a tool of this name, whatever the server says.
fn withheld(permit: &Permit, name: &str) -> bool {
    permit.hidden(name) || builtin::is_reserved(name)
}
