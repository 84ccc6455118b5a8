//! What the forward proxy would do with a URL.

use super::{
    policy::Policy,
    report::{self, Decision},
};
use crate::{
    address::{Host, Leg, Scheme, Target},
    clock::{Clock, SystemClock},
    policy::{Denied, Head, ProxyPermit, TunnelTls, decide_egress},
    subject::Subject,
};

impl Policy {
    /// Whether a URL is the proxy's: no server is registered there, or a rule names it all the same.
    pub(super) fn is_proxied(&self, target: &Target) -> bool {
        let mut rules = self.snapshot().proxy.allow.iter();
        self.server_at(target).is_none() || rules.any(|rule| rule.covers(target))
    }

    /// Whether `subject` may go there now, and by which rule; `head` counts for plain requests only.
    pub(super) fn through_proxy(
        &self,
        subject: &Subject,
        target: &Target,
        head: Head<'_>,
    ) -> Result<Decision, Decision> {
        let head = (target.scheme() == Scheme::Http).then_some(head);
        let now = SystemClock.now();
        match decide_egress(self.snapshot(), subject, target, head, now) {
            Ok(permit) => Ok(passed(&permit, subject, head)),
            Err(denied) => Err(refused(&denied)),
        }
    }

    /// The answer for a name that the parent proxy resolves, once its name itself is judged.
    pub(super) fn left_to_parent(&self, leg: &Leg, target: &Target) -> Option<Decision> {
        let parent = self.snapshot().proxy.parent.as_ref()?;
        let name = matches!(target.host(), Host::Name(_));
        let answered = self.rules().before_resolving(leg, target) != Ok(None);
        if *leg != Leg::Proxy || !parent.resolves || !name || answered {
            return None;
        }
        let reason = format!(
            "{} resolves it, so no address is judged; records say pinned = false",
            parent.target
        );
        let about = target.host().to_string();
        Some(Decision::allow(&about, "parent_resolves = true", reason))
    }
}

fn passed(permit: &ProxyPermit, subject: &Subject, head: Option<Head<'_>>) -> Decision {
    if let Some(denied) = permit.would_refuse() {
        let reason = format!(
            "{}; it passes, since for now this is only reported",
            words(denied)
        );
        return Decision {
            verdict: report::WOULD_REFUSE,
            ..Decision::refuse("access", denied.refusal.code, &denied.rule, reason)
        };
    }
    let user = &subject.user;
    let reason = match (head, permit.tls()) {
        (Some(head), _) => format!(
            "user `{user}` may send `{} {}` through the proxy",
            head.method, head.path
        ),
        (None, TunnelTls::Pass) => format!(
            "user `{user}` may open a tunnel for TLS to `{}` through the proxy",
            permit.target().host()
        ),
        (None, TunnelTls::Opaque) => {
            format!("user `{user}` may open a tunnel for anything through the proxy")
        }
    };
    Decision::allow("access", permit.rule(), reason)
}

fn refused(denied: &Denied) -> Decision {
    let code = denied.refusal.code;
    Decision::refuse("access", code, &denied.rule, words(denied))
}

/// The refusal with what only the operator is told, else with the caller's next step.
fn words(denied: &Denied) -> String {
    let refusal = &denied.refusal;
    let next = refusal.code.remedy();
    format!(
        "{}; {}",
        refusal.public,
        refusal.detail.as_deref().unwrap_or(next)
    )
}
