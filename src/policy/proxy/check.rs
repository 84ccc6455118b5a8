//! Faults of the proxy's rules that only show beside other files.

use std::{collections::BTreeSet, sync::Arc};

use super::{Draft, Parent};
use crate::{address::Target, policy::Server, table::Fault};

/// A rule that leads to a registered server without saying so: the proxy is no way around approvals.
pub(in crate::policy) fn around_approvals<'a>(
    drafts: &'a [Draft],
    servers: impl Iterator<Item = &'a Server> + Clone + 'a,
) -> impl Iterator<Item = Fault> {
    drafts
        .iter()
        .filter(|draft| !draft.rule.also_server)
        .filter_map(move |draft| {
            let server = servers
                .clone()
                .find(|server| draft.rule.leads_to(server))?;
            Some(draft.host.fault(format!(
                "server `{}` is at {}, and callers could pass by the approvals of its tools; take its host out, or say \
                 also_server = true",
                server.name,
                server.endpoint.target()
            )))
        })
}

/// Rules that have to say of which tenants their callers are, and do not.
pub(in crate::policy) fn unnamed_tenants(
    drafts: &[Draft],
    known: &BTreeSet<&str>,
) -> impl Iterator<Item = Fault> {
    let known: Vec<String> = known.iter().map(|tenant| format!("`{tenant}`")).collect();
    let unnamed = drafts.iter().filter(|draft| !draft.names_tenants);
    unnamed.map(move |draft| {
        draft.place.fault(format!(
            "`who.tenants` is missing, and there are the tenants {}; name those whose callers the rule is for",
            known.join(", ")
        ))
    })
}

/// The parent proxy, of which `config` has checked that it is an http origin.
pub(in crate::policy) fn parent(
    written: Option<(&str, bool)>,
    faults: &mut Vec<Fault>,
) -> Option<Arc<Parent>> {
    let (url, resolves) = written?;
    match Target::from_operator(url) {
        Ok(target) => Some(Arc::new(Parent { target, resolves })),
        Err(error) => {
            let message = format!("egress.parent.url: {error}");
            faults.push(Fault::whole("tollgate.toml", message));
            None
        }
    }
}
