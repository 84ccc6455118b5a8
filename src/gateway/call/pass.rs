//! Requests that go on as they are and change nothing: resources, prompts, completion, logging.

use std::{pin::pin, sync::Arc};

use super::rounds;
use crate::{
    deadline::Deadline,
    egress::Effect,
    gateway::{
        Ask, Asked, Entry, Finding, Gateway,
        connection::{offered, waiting},
        discovery::prompts,
    },
    mcp::Method,
    policy::{Auth, Permit},
    refusal::Refusal,
};

/// Asks what the caller asked.
pub(in crate::gateway) async fn pass(
    gateway: &Gateway,
    ask: &Ask,
    asked: &Asked<'_>,
    permit: &Permit,
    entry: &mut Entry,
) -> Result<Finding, Refusal> {
    entry.record().tool = named(asked);
    let deadline = Deadline::after(permit.server().limits.call);
    if permit.server().auth != Auth::None {
        waiting::person(gateway, asked, permit, deadline).await;
        if offered::is_withheld_now(gateway, ask, permit, deadline).await {
            return offered::nothing(asked, permit);
        }
    }
    let round = rounds::resume(gateway, asked, permit)?;
    entry.admit_read()?;
    prompts::check(gateway, asked, permit, deadline).await?;
    let ticket = asked.ticket(gateway)?;
    let (lanes, upstream) = (&gateway.shared.lanes, &gateway.upstream);
    let _leave = if asked.asker.method.is_some_and(does_work) {
        let subject = entry.subject().clone();
        let seat = lanes.at_server(upstream, permit, &subject, &ticket, deadline);
        let (seat, leave) = seat.await?;
        entry.held.server = Some(seat);
        leave
    } else {
        upstream.admit(permit)?
    };
    let request = asked.request(permit, &ticket, round.as_ref(), &Effect::Read, deadline);
    let asking = pin!(upstream.ask(request));
    let answered = ticket.unless_stopped(asking).await;
    entry.forwarded(gateway, permit, ticket, answered)
}

/// What a server has work with, as with calls. Lists and settings go beside the seats that these fill.
fn does_work(method: Method) -> bool {
    matches!(
        method,
        Method::ResourcesRead | Method::PromptsGet | Method::Complete
    )
}

/// The prompt or resource, for the record.
fn named(asked: &Asked<'_>) -> Option<Arc<str>> {
    let params = asked.message.params.as_ref()?;
    let part = match asked.asker.method? {
        Method::PromptsGet => params.name,
        Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
            params.uri
        }
        _ => None,
    };
    Some(part?.string()?.into())
}
