//! Owns: consent: why a call may have an effect.
//! Imports: layers 0–2.
//! Never: guesses; a tool that nobody accepted does not run.
//! Fails as: [`Refusal`] with `approval.unavailable`.

use crate::{
    catalog::PinnedTool,
    policy::{Permit, Unasked},
    refusal::{Code, Refusal},
};

/// Proof that one call of one tool may run. Made only here, moved into the call, so that it serves once.
#[derive(Debug)]
#[must_use]
pub struct Consent(Unasked);

impl Consent {
    /// Whether the call counts as a side effect: recorded durably before it is sent and before it is answered.
    pub fn is_effect(&self) -> bool {
        self.0 != Unasked::ReadOnly
    }
}

/// Consent for a call to `tool`, where the operator's file lets it run unasked.
///
/// People cannot be asked in this version, so every other tool is refused.
pub fn consent(permit: &Permit, tool: &PinnedTool) -> Result<Consent, Refusal> {
    permit
        .unasked(tool.name(), tool.read_only_hint())
        .map(Consent)
        .ok_or_else(|| {
            Refusal::new(
                Code::ApprovalUnavailable,
                format!(
                    "tool `{}` of server `{}` may have side effects, and nobody can be asked yet",
                    tool.name(),
                    permit.server().name
                ),
            )
        })
}
