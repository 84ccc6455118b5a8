//! Arguments that a tool has its callers mirror in headers, before anything is sent (MCP 2026-07-28, transports).

use crate::{catalog::PinnedTool, gateway::Asked, mcp::Era, refusal::Refusal};

/// Refuses a modern call whose headers say something else than its arguments. Sessions have no such headers, and most
/// tools ask for none: their arguments are not looked at.
pub(super) fn check(asked: &Asked<'_>, tool: &PinnedTool) -> Result<(), Refusal> {
    let mirrors = tool.mirrors();
    if asked.asker.era == Era::Legacy || mirrors.is_empty() {
        return Ok(());
    }
    let params = asked.message.params.as_ref();
    let arguments = params.and_then(|params| params.arguments);
    mirrors.check(arguments, asked.head)
}
