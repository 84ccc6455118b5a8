//! Servers that want more than was granted (RFC 6750, section 3.1: `insufficient_scope`): asked for with everything that
//! was asked for before, and not for ever.

use crate::{
    connect::{
        self, Challenge, Error, Inner,
        found::discovered,
        inner,
        kept::{
            change::change,
            grant::{self, Payload, Tried},
        },
        provider::scopes,
    },
    policy::Permit,
};

/// How often a person is asked for the same scopes.
const ATTEMPTS: u8 = 3;
/// Sets of scopes that are remembered of one connection; the oldest goes first.
const SETS: usize = 16;

/// What to tell the caller whom a server answered 403 with `challenge`; the connection remembers it for the next flow.
/// `None` where it is about something else, where the operator allows no more, or where it was asked for often enough.
pub(in crate::connect) async fn more_wanted(
    inner: &Inner,
    permit: &Permit,
    challenge: &Challenge,
) -> Option<Error> {
    let bearer = challenge.bearer();
    if bearer.error.as_deref() != Some("insufficient_scope") {
        return None;
    }
    let knobs = connect::knobs(permit).ok()?;
    let row = inner.records.grant(&inner::key(permit)).await.ok()??;
    let payload = grant::open(&inner.vault, &row).ok()?;
    let mut discovered = discovered::pinned(inner, permit).await.ok()??;
    if discovered.issuer != payload.issuer {
        // This person confirmed another than the pinned one, of whose scopes nothing is kept.
        discovered.issuer.clone_from(&payload.issuer);
        discovered.scopes_supported = None;
    }
    let challenged = bearer.scope.as_deref();
    let knobs = discovered.knobs(knobs);
    let wanted = scopes::wanted(&knobs, &discovered, challenged, &payload.requested_scopes);
    let missing = missing(&wanted, challenged, &payload.granted_scopes);
    if missing.is_empty() || times(&payload.tried, &wanted) >= ATTEMPTS {
        return None;
    }
    let keep = |payload: &mut Payload| payload.wanted.clone_from(&missing);
    if payload.wanted != missing
        && let Err(error) = change(inner, &row, |_, payload| keep(payload)).await
    {
        // Where somebody refreshes it, the next 403 is remembered.
        tracing::warn!(%error, "what a server wants besides was not kept");
    }
    Some(Error::MoreScopes {
        server: permit.server().name.clone(),
        scopes: missing,
    })
}

/// What was tried, with this time besides.
pub(super) fn once_more(tried: &[Tried], wanted: &[String]) -> Vec<Tried> {
    let set = sorted(wanted);
    let mut next: Vec<_> = tried
        .iter()
        .filter(|one| one.scopes != set)
        .cloned()
        .collect();
    next.push(Tried {
        times: times(tried, wanted).saturating_add(1),
        scopes: set,
    });
    let surplus = next.len().saturating_sub(SETS);
    next.drain(..surplus);
    next
}

/// Those of `wanted` that the server asks for and that were not granted.
fn missing(wanted: &[String], challenged: Option<&[String]>, granted: &[String]) -> Vec<String> {
    let is_asked_for = |scope: &&String| challenged.is_none_or(|asked| asked.contains(scope));
    wanted
        .iter()
        .filter(is_asked_for)
        .filter(|scope| !granted.contains(scope))
        .cloned()
        .collect()
}

fn times(tried: &[Tried], wanted: &[String]) -> u8 {
    let set = sorted(wanted);
    let of = tried.iter().find(|one| one.scopes == set);
    of.map_or(0, |one| one.times)
}

fn sorted(scopes: &[String]) -> Vec<String> {
    let mut set = scopes.to_vec();
    set.sort();
    set.dedup();
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split_ascii_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_missing_is_what_the_server_asks_for_and_nobody_granted() {
        let missing = |wanted, challenged: Option<&str>, granted| {
            let challenged = challenged.map(list);
            missing(&list(wanted), challenged.as_deref(), &list(granted)).join(" ")
        };
        assert_eq!(missing("a b c", Some("b c"), "a b"), "c");
        assert_eq!(missing("a b", Some("c"), "a"), "", "c is beyond the bound");
        assert_eq!(missing("a b", None, "a"), "b");
        assert_eq!(missing("a b", Some("a"), "a b"), "");
    }

    #[test]
    fn a_set_is_counted_whatever_its_order() {
        let mut tried = Vec::new();
        for time in 0..3 {
            assert_eq!(times(&tried, &list("b a")), time);
            tried = once_more(&tried, &list("a b"));
        }
        assert_eq!(times(&tried, &list("b a")), 3);
        assert_eq!(times(&tried, &list("a")), 0);
    }

    #[test]
    fn the_oldest_sets_are_forgotten() {
        let mut tried = once_more(&[], &list("first"));
        for set in 0..16 {
            tried = once_more(&tried, &[format!("s{set}")]);
        }
        assert_eq!(tried.len(), 16);
        assert_eq!(times(&tried, &list("first")), 0);
        assert_eq!(times(&tried, &list("s0")), 1);
    }
}
