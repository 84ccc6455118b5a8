//! Which scopes are asked for.

use super::discovery::Discovered;
use crate::policy;

/// What lets a refresh token outlive the visit (OpenID Connect Core, section 11).
const OFFLINE: &str = "offline_access";

/// The scopes to ask for; none leaves the parameter out. The operator's own words come first of all, then what the server
/// just asked for, then what its metadata lists; what was asked for `before` stays. `offline_access` is added where the
/// authorization server knows it. Nothing goes beyond `scopes_max`.
pub(in crate::connect) fn wanted(
    knobs: &policy::OAuth,
    discovered: &Discovered,
    challenged: Option<&[String]>,
    before: &[String],
) -> Vec<String> {
    let own: Option<Vec<String>> = knobs
        .scopes
        .as_ref()
        .map(|scopes| scopes.iter().map(|scope| scope.to_string()).collect());
    let is_own = own.is_some();
    let now = own
        .or_else(|| challenged.map(<[String]>::to_vec))
        .or_else(|| discovered.resource_scopes.clone())
        .unwrap_or_default();
    let mut wanted = Vec::new();
    for scope in before.iter().cloned().chain(now) {
        add(&mut wanted, scope);
    }
    let known = discovered.scopes_supported.as_deref().unwrap_or_default();
    // Alone it would be all that is granted.
    if !is_own && !wanted.is_empty() && known.iter().any(|scope| scope == OFFLINE) {
        add(&mut wanted, OFFLINE.to_owned());
    }
    if let Some(most) = &knobs.scopes_max {
        wanted.retain(|scope| most.iter().any(|allowed| **allowed == **scope));
    }
    wanted
}

fn add(scopes: &mut Vec<String>, scope: String) {
    if !scopes.contains(&scope) {
        scopes.push(scope);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split_ascii_whitespace().map(str::to_owned).collect()
    }

    fn knobs(scopes: Option<&str>, most: Option<&str>) -> policy::OAuth {
        let words = |text: &str| list(text).iter().map(|word| word.as_str().into()).collect();
        policy::OAuth {
            scopes: scopes.map(words),
            scopes_max: most.map(words),
            ..policy::OAuth::default()
        }
    }

    fn discovered(resource: Option<&str>, server: Option<&str>) -> Discovered {
        Discovered {
            resource_scopes: resource.map(list),
            scopes_supported: server.map(list),
            ..Discovered::default()
        }
    }

    #[test]
    fn the_challenge_wins_over_metadata_and_silence_leaves_them_out() {
        let plain = knobs(None, None);
        let both = discovered(Some("a b"), Some("z"));
        assert_eq!(wanted(&plain, &both, Some(&list("c")), &[]), ["c"]);
        assert_eq!(wanted(&plain, &both, None, &[]), ["a", "b"]);
        let silent = discovered(None, Some("z offline_access"));
        assert!(wanted(&plain, &silent, None, &[]).is_empty());
    }

    #[test]
    fn a_step_up_keeps_what_was_asked_for_before() {
        let plain = knobs(None, None);
        let step = wanted(
            &plain,
            &discovered(Some("x"), None),
            Some(&list("b c")),
            &list("a b"),
        );
        assert_eq!(step, ["a", "b", "c"]);
    }

    #[test]
    fn offline_access_is_added_only_where_the_authorization_server_lists_it() {
        let plain = knobs(None, None);
        let with = discovered(Some("a"), Some("a offline_access"));
        assert_eq!(wanted(&plain, &with, None, &[]), ["a", "offline_access"]);
        let without = discovered(Some("a"), Some("a"));
        assert_eq!(wanted(&plain, &without, None, &[]), ["a"]);
        let own = wanted(&knobs(Some("b"), None), &with, Some(&list("c")), &[]);
        assert_eq!(own, ["b"], "the operator's words are taken as they are");
    }

    #[test]
    fn nothing_goes_beyond_what_the_operator_allows() {
        let bound = knobs(None, Some("a c"));
        let known = discovered(None, Some("offline_access"));
        assert_eq!(
            wanted(&bound, &known, Some(&list("a b")), &list("c d")),
            ["c", "a"]
        );
    }
}
