//! Arguments against the schema of the pinned definition, before anything is sent or asked (MCP 2026-07-28, tools).

use crate::{
    catalog::{Arguments, PinnedTool},
    deadline::Deadline,
    gateway::{Asked, Gateway},
    refusal::Refusal,
};

/// Refuses a call whose arguments are not what its tool takes; the model is told what is wrong with them.
pub(super) async fn check(
    gateway: &Gateway,
    asked: &Asked<'_>,
    tool: &PinnedTool,
    deadline: Deadline,
) -> Result<(), Refusal> {
    let schemas = gateway.shared.catalog.schemas();
    let params = asked.message.params.as_ref();
    let arguments = Arguments {
        tool: tool.name(),
        schema: tool.schema(),
        text: params.and_then(|params| Some(params.arguments?.as_str())),
    };
    match schemas.check_now(arguments) {
        Some(checked) => checked,
        // Rare, and its state large: boxed, it does not weigh on every call.
        None => Box::pin(schemas.check(arguments, deadline)).await,
    }
}
