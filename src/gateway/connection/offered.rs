//! `offer = "connected"`: servers that the caller has no credential for are not offered. Their lists are empty, and what is
//! asked of them by name is unknown; Tollgate's own tools stay, and tell where to connect.

use crate::{
    deadline::Deadline,
    gateway::{Ask, Asked, Finding, Gateway, builtin},
    mcp::Method,
    policy::{Permit, Snapshot},
    refusal::{Code, Refusal},
};

/// Whether who is refused with this code has no credential, and is not offered the server for that.
pub(in crate::gateway) fn is_withheld(policy: &Snapshot, code: Code) -> bool {
    let lacks = matches!(
        code,
        Code::ConnectRequired | Code::ConnectAgain | Code::ConnectShared
    );
    policy.connected_only && lacks
}

/// Whether the server is not offered to the caller now.
pub(in crate::gateway) async fn is_withheld_now(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
    deadline: Deadline,
) -> bool {
    if !ask.policy.connected_only {
        return false;
    }
    let found = gateway.upstream.credential(permit, deadline).await;
    found.is_err_and(|error| is_withheld(&ask.policy, error.code()))
}

/// What a request for something of such a server is answered.
pub(in crate::gateway) fn nothing(asked: &Asked<'_>, permit: &Permit) -> Result<Finding, Refusal> {
    let params = asked.message.params.as_ref();
    let name = params.and_then(|params| params.name?.string());
    let (name, server) = (name.unwrap_or_default(), &permit.server().name);
    Err(match asked.asker.method {
        Some(Method::ResourcesList) => {
            return Ok(Finding::Own(builtin::page(
                asked.asker.era,
                "resources",
                "",
            )));
        }
        Some(Method::ToolsCall) => Refusal::new(
            Code::ToolUnknown,
            format!("no tool `{name}` on server `{server}`"),
        ),
        Some(Method::PromptsGet) => Refusal::new(
            Code::InvalidParams,
            format!("no prompt `{name}` on server `{server}`"),
        ),
        Some(Method::SetLevel) => Refusal::new(
            Code::MethodUnknown,
            format!("server `{server}` has no log to set a level of"),
        ),
        _ => Refusal::new(
            Code::InvalidParams,
            format!("nothing of this name on server `{server}`"),
        ),
    })
}
