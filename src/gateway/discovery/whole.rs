//! Questions that have no effect, and whose answer is looked at before it goes on.

use std::pin::pin;

use crate::{
    deadline::Deadline,
    egress::Effect,
    gateway::{Asked, Entry, Gateway},
    policy::Permit,
    refusal::Refusal,
    upstream::Message,
};

/// Asks what the caller asked, and waits for the whole answer.
pub(super) async fn answer(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    entry: &mut Entry,
) -> Result<Message, Refusal> {
    entry.admit_read()?;
    let deadline = Deadline::after(permit.server().limits.call);
    let ticket = asked.ticket(gateway)?;
    let _leave = gateway.upstream.admit(permit)?;
    let request = asked.request(permit, &ticket, None, &Effect::Read, deadline);
    let asking = pin!(gateway.upstream.ask_whole(request));
    let answered = ticket.unless_stopped(asking).await;
    let (message, destination) =
        answered.map_err(|error| entry.failed(gateway, permit, &ticket, error))?;
    entry.went_to(destination);
    message.map_err(|error| entry.failed(gateway, permit, &ticket, error))
}
